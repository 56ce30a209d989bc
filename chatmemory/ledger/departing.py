"""Which stays are left of a window, and which of them ended otherwise than a replay decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter, itemgetter

from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry
from chatmemory.ledger.entries import StayEntry, stay_entries
from chatmemory.ledger.reading import EndedStay


def remaining(entries: Iterable[Entry], removed: set[int]) -> list[StayEntry]:
    """Return entries by rank, without those of the removed numbers, which are taken from the set.

    Entries that are removed are not held, so that a list may replace a long one.
    """
    left = []
    for entry in stay_entries(entries):
        if entry.n in removed:
            removed.discard(entry.n)
        else:
            left.append(entry)
    return sorted(left, key=attrgetter("rank"))


def departures(transition: Transition) -> Iterator[tuple[StayEntry, str | None]]:
    """Yield the entries that leave, with their reasons."""
    entries = stay_entries(eviction.entry for eviction in transition.evictions)
    return zip(entries, (eviction.reason for eviction in transition.evictions), strict=True)


def differences(
    decided: dict[int, str | None], stored: Iterable[EndedStay], transition: Transition
) -> list[tuple[int, int, str | None, str | None]]:
    """Return the stays that did not end as decided: number, seq, expected and stored reason. What
    ended as decided is taken from `decided`.
    """
    different = [
        (stay.n, stay.seq, expected, stay.reason)
        for stay in stored
        if (expected := decided.pop(stay.n, None)) != stay.reason
    ]
    for entry, reason in departures(transition) if decided else ():
        if entry.n in decided:
            different.append((entry.n, entry.seq, reason, None))
    return sorted(different, key=itemgetter(0))
