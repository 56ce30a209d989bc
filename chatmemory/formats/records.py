"""Finds the records of a session in a JSON value or a `Packed` list, whose items are compressed to
save memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.formats.packed import is_list
from chatmemory.messages.json_values import JsonValue


def records_in(value: JsonValue) -> Sequence[JsonValue]:
    """Return the records of a value: the value if it is a list, else a list with only the value."""
    return value if is_list(value) else [value]
