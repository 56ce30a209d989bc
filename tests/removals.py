"""Which rooms are removed together, so that a few trees show what a tree without each would.

A room that cannot be removed is one that another needs without saying so. That shows in each tree
that lacks the one and has the other. So every pair of rooms has such a tree, and the rooms that
need a removed room are removed with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from chatmemory.rooms import rooms

Pairs = frozenset[tuple[str, str]]  # (a room that is removed, another that stays)


def removals(changed: Collection[str]) -> list[frozenset[str]]:
    """Return the rooms to remove for each tree: each changed room alone, or fewer trees."""
    alone = [with_dependents([name]) for name in changed]
    together: list[frozenset[str]] = []
    unseen = frozenset().union(*map(shown_without, alone))
    while unseen:
        together.append(_showing_most(unseen, changed))
        unseen -= shown_without(together[-1])
    return min(alone, together, key=len)


def with_dependents(names: Iterable[str]) -> frozenset[str]:
    """Return these rooms and all that need one of them."""
    removed = frozenset(names)
    while more := {room.room for room in rooms() if removed & {*room.needs}} - removed:
        removed |= more
    return removed


def shown_without(removed: Collection[str]) -> Pairs:
    """Return the pairs that a tree without these rooms tells about."""
    left = [room.room for room in rooms() if room.room not in removed]
    return frozenset((gone, other) for gone in removed for other in left)


def _showing_most(unseen: Pairs, changed: Collection[str]) -> frozenset[str]:
    """Return rooms to remove; with one more or less of them, fewer unseen pairs would show."""
    removed: frozenset[str] = frozenset()
    while True:
        larger = [removed | with_dependents([name]) for name in changed if name not in removed]
        best = max(larger, key=lambda each: len(unseen & shown_without(each)), default=removed)
        if len(unseen & shown_without(best)) <= len(unseen & shown_without(removed)):
            return removed
        removed = best
