"""Finds the records of a session in a JSON value or a packed list."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.formats.packed import is_list
from chatmemory.messages.json_values import JsonValue


def records_in(value: JsonValue) -> Sequence[JsonValue]:
    """Return a value's records: the value itself if it is a list, else a list of this single
    record.
    """
    return value if is_list(value) else [value]
