"""Tombstones: the texts that replace redacted messages, such as `[redacted #12]`."""

from __future__ import annotations

from chatmemory.patterns import declared_pattern

TOMBSTONE = declared_pattern(r"\[redacted #([0-9]{1,19})\]")


def tombstone_of(seq: int) -> str:
    """Return the text that replaces a redacted message, such as `[redacted #12]`."""
    return f"[redacted #{seq}]"


def is_tombstone(text: str) -> bool:
    """Return whether a text is exactly the text of a redacted message, such as `[redacted #12]`."""
    return TOMBSTONE.fullmatch(text) is not None
