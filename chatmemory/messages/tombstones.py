"""Tombstones: the words that a redaction leaves in a message's place."""

from __future__ import annotations

from chatmemory.patterns import declared_pattern

TOMBSTONE = declared_pattern(r"\[redacted #([0-9]{1,19})\]")


def tombstone_of(seq: int) -> str:
    """Return the text of a redacted message."""
    return f"[redacted #{seq}]"


def is_tombstone(text: str) -> bool:
    """Return whether a text is that of a redacted message."""
    return TOMBSTONE.fullmatch(text) is not None
