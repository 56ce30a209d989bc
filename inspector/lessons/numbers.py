"""Whole numbers in addresses, which anybody writes."""

from __future__ import annotations

DIGITS = 6


def whole(text: str, most: int) -> int | None:
    """Return a number from 0 to `most`, or `most` for a larger one; None for any other text."""
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS:
        return None
    return min(int(text), most)
