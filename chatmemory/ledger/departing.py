"""Which stays are left of a window, and which of them ended otherwise than a replay decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from chatmemory.core.eviction import Eviction
from chatmemory.ledger.contradictions import Contradicted, stay_name
from chatmemory.ledger.entries import StayEntry, stay_entries
from chatmemory.ledger.reading import EndedStays
from chatmemory.models import Step


def remains(entry: StayEntry, left: EndedStays, spared: Collection[str] = ()) -> bool:
    """Return whether the stay of an entry goes on, or ended for one of the `spared` reasons. Else
    its end is taken.
    """
    reason = left.reason_of(entry.n)
    if reason is None or reason in spared:
        return True
    left.take(entry.n)
    return False


class ComparedDepartures:
    """What a replay decides to leave at a step, compared at once with the stays that ended.

    It looks like a list of evictions. Only those of stays from number `kept_from` on are kept: one
    step can evict hundreds of thousands.
    """

    def __init__(self, step: Step, left: EndedStays, kept_from: int = 0) -> None:
        self._step, self._left, self._kept_from = step, left, kept_from
        self._count = 0
        self._kept: list[Eviction] = []
        self._different: tuple[int, int, str | None, str | None] | None = None

    def append(self, eviction: Eviction) -> None:
        self._count += 1
        (entry,) = stay_entries([eviction.entry])
        if entry.n >= self._kept_from:
            self._kept.append(eviction)
        found = self._left.take(entry.n)
        if found != eviction.reason:
            self._differs(entry.n, entry.seq, eviction.reason, found)

    def extend(self, evictions: Iterable[Eviction]) -> None:
        for eviction in evictions:
            self.append(eviction)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Eviction]:
        return iter(self._kept)

    def check(self) -> None:
        """Raise Contradicted for the first stay that did not end as decided."""
        for stay in self._left.not_taken():
            self._differs(stay.n, stay.seq, None, stay.reason)
        if self._different:
            n, seq, expected, found = self._different
            raise Contradicted(
                stay_name(n, seq),
                f"at step {self._step.n} the replay has {expected or 'no departure'}, "
                f"stored is {found or 'no departure'}",
            )

    def _differs(self, n: int, seq: int, expected: str | None, found: str | None) -> None:
        if self._different is None or n < self._different[0]:
            self._different = n, seq, expected, found
