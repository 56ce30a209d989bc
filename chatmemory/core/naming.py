"""The names of messages in sentences."""

from __future__ import annotations


def named(seq: int) -> str:
    """Return `#26`, or `draft 1` for -1: the drafts of a simulation are counted down from -1."""
    return f"#{seq}" if seq >= 0 else f"draft {-seq}"
