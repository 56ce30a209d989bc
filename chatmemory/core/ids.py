"""Memory ids are strings, unlike in Java: 42 and "42" would be one conversation in a database."""

from __future__ import annotations

from chatmemory.core.exceptions import InvalidValue


def string_id(memory_id: object) -> str:
    """Return an id if it is a string. Raises InvalidValue."""
    if memory_id is None:
        raise InvalidValue("id cannot be null")
    if not isinstance(memory_id, str):
        shown = repr(memory_id)
        shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
        raise InvalidValue(f"a memory id must be a string, not {shown}: use str(…)")
    return memory_id
