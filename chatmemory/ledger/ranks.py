"""Ranks order the stays of a window, and are never rewritten.

They are spaced widely: an append takes its stay's number times the spacing, a message at the head
goes below the lowest, an insertion takes a midpoint. Where no rank is free, the stays that follow
end and begin again behind all others.
"""

from __future__ import annotations

from collections.abc import Sequence

RANK_SPACING = 2**20


def appended_rank(n: int) -> int:
    """The rank of stay `n` at the end of the window: above every rank given before."""
    return n * RANK_SPACING


def head_rank(first: int) -> int:
    """A rank at the head of a window whose first rank is `first`."""
    return first - RANK_SPACING


def place_ranks(ranks: Sequence[int | None]) -> list[int | None]:
    """Fill the gaps (None) between ascending ranks: midpoints, evenly spaced; before the head,
    below it.

    From the first gap that has no room on, and at the end, None asks for an appended rank.
    """
    placed: list[int | None] = list(ranks)
    known = [(j, rank) for j, rank in enumerate(ranks) if rank is not None]
    previous, below = -1, None
    for j, rank in known:
        gap = j - previous - 1
        low = rank - (gap + 1) * RANK_SPACING if below is None else below
        if rank - low <= gap:
            return placed[: previous + 1] + [None] * (len(ranks) - previous - 1)
        for position in range(1, gap + 1):
            placed[previous + position] = low + (rank - low) * position // (gap + 1)
        previous, below = j, rank
    return placed
