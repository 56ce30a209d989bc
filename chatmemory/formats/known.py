"""Shapes of files that are known and not read: a refusal calls them by their name.

Each is one line of `KNOWN`. They are asked before the formats, so that a file of another program is
not taken for one of ours: `is_like` must be True of files of that program alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KnownShape:
    """A kind of file that is not read.

    `name` completes "the file is …", such as "an export of Slack". `is_like` is given the JSON
    value of the file, of any type; of a file of lines, a list of the first of them. `instead` says
    in a sentence what to do, if there is something.
    """

    name: str
    is_like: Callable[[Any], bool]
    instead: str = ""


KNOWN: tuple[KnownShape, ...] = ()


def known_shape(value: Any) -> KnownShape | None:
    """Return the known shape of a file's value, None if it is none of them."""
    return next((each for each in KNOWN if each.is_like(value)), None)


def why_unread(shape: KnownShape, called: str) -> str:
    """Return the sentence of a refusal."""
    instead = f" {shape.instead}" if shape.instead else ""
    return f"{called} is {shape.name}, which is not read.{instead}".removesuffix(".")


def shape_of(value: Any) -> str:
    """Return what a file is, in words for an error."""
    if isinstance(value, list) and value:
        return f"a list that begins with {_kind(value[0])}"
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict) and value:
        is_empty = any(value.get(name) == [] for name in ("messages", "conversations"))
        names = ", ".join(repr(key[:20]) for key in list(value)[:5])
        return f"an object with {names}{' and no messages in it' if is_empty else ''}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return next(words for kind, words in _KINDS if isinstance(value, kind))


_KINDS = (
    (dict, "an empty object"),
    (str, "a string"),
    (bool, "true or false"),
    (int | float, "a number"),
    (object, "null"),
)
