"""Reads the texts of a provider's error: the error itself, and the strings of its JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from chatmemory.messages.json_values import JsonValue

LONGEST = 100_000  # characters of an error that are read


def texts_in(error: str) -> Iterator[str]:
    """Yield the text of an error, and all strings in it if the text is JSON. A string that is JSON
    itself yields its strings, too. Only the first LONGEST characters of an error are read.
    """
    error = error[:LONGEST]
    yield error
    try:
        value = json.loads(error)
    except (ValueError, RecursionError):
        return
    yield from _within(value, 5)


def _within(value: JsonValue, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if depth and value.lstrip().startswith("{"):
            yield from texts_in(value)
    elif isinstance(value, dict | list) and depth:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _within(each, depth - 1)
