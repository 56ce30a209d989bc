"""The records of a session, packed to save memory."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.formats.packed import is_list
from chatmemory.messages.json_values import JsonValue


def records_in(value: JsonValue) -> Sequence[JsonValue]:
    """Return the records of a value, which is a list of records or one record."""
    return value if is_list(value) else [value]
