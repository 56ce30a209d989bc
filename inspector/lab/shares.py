"""Shares in whole percent."""

from __future__ import annotations


def percent(part: int, whole: int) -> str:
    """Return a share in words: 100 % only of everything, and 0 % only of nothing.

    Nothing has no shares: they are empty.
    """
    if not whole:
        return ""
    rounded = round(100 * part / whole)
    if 0 < part < whole:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded} %"
