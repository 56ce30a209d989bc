"""The records of a session, packed to save memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatmemory.formats.packed import is_list


def records_in(value: Any) -> Sequence[Any]:
    """Return the records of a value, which is a list of records or one record."""
    return value if is_list(value) else [value]
