"""The records of a session in little memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatmemory.messages.packed import is_list


def records_in(value: Any) -> Sequence[Any]:
    """Return the records that a value is: a list of them, or one."""
    return value if is_list(value) else [value]
