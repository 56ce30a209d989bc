"""Ranks: the integers that order the stays of a window.

A rank is never changed once it is stored: past windows are read from the same rows as the current
one. Ranks are spaced widely to leave room for insertions. An appended stay has its number times the
spacing, which needs no query for the highest rank. A stay at the head has the lowest rank less the
spacing, and an inserted stay a rank between those of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.exceptions import NotCompactable
from chatmemory.windows.transitions import Transition

RANK_SPACING = 2**20


def appended_rank(n: int) -> int:
    """Return the rank of stay `n` at the end of the window, above all earlier ranks."""
    return n * RANK_SPACING


def head_rank(first: int) -> int:
    """Return a rank at the head of a window whose lowest rank is `first`."""
    return first - RANK_SPACING


def rank_of_summary(transition: Transition, n: int) -> int:
    """Return the rank of a summary, whose stay gets the number `n`.

    It is the rank of the first message that it covers, if the summary takes its place, else a rank
    between its neighbours'. Raises NotCompactable if none is free between them.
    """
    ranks = [each.rank if each.n else None for each in transition.arrivals]
    place = ranks.index(None)
    covered = min(
        (eviction.entry.rank for eviction in transition.evictions),
        default=appended_rank(n),
    )
    if sum(rank is not None and rank < covered for rank in ranks) == place:
        return covered
    rank = place_ranks(ranks)[place]
    if rank is None and place < len(ranks) - 1:
        raise NotCompactable("no rank is free for another summary between the same two messages")
    return appended_rank(n) if rank is None else rank


def place_ranks(ranks: Sequence[int | None]) -> list[int | None]:
    """Fill the gaps (None) between ascending ranks with evenly spaced ranks.

    In a gap at the head, the ranks are below the first known one. Behind the last known rank, and
    from the first gap that has too little room on, the result is None: use an appended rank.
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
