"""Memory ids are strings, unlike in Java: 42 and "42" would be one conversation in a database."""

from __future__ import annotations

from chatmemory.core.exceptions import InvalidValue


def string_id(memory_id: object, limit_name: str = "") -> str:
    """Return an id if it is a string. Raises InvalidValue.

    `limit_name` is that of an argument for which a number may be meant.
    """
    if memory_id is None:
        raise InvalidValue("id cannot be null")
    if not isinstance(memory_id, str):
        shown = repr(memory_id)
        shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
        meant = f", or {limit_name}={shown}" if limit_name and isinstance(memory_id, int) else ""
        raise InvalidValue(f"a memory id must be a string, not {shown}: use str(…){meant}")
    return memory_id
