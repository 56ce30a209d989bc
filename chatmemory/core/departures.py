"""What leaves a window that is read from columns: positions of its rows instead of evictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from chatmemory.core.eviction import Eviction, Head, Reason
from chatmemory.core.long_lists import HAS_CALLS, TOKENS, TYPE, Columns
from chatmemory.core.messages import TYPES
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import trim
from chatmemory.core.window import Entry, Totals

PINNED = 5  # the column of places behind `entered_step`


@dataclass
class Departures:
    """The positions of rows that leave, in order; of some, the tool call with which they do.

    When a message arrives, the first `ahead` leave before it does. The last `rest` are the rest of
    a turn that lost its beginning. `is_all` if no others leave.
    """

    positions: list[int] = field(default_factory=list)
    calls: dict[int, int] = field(default_factory=dict)
    ahead: int = 0
    rest: int = 0
    is_all: bool = False


def by_own_rule(rows: Sequence[Columns], totals: Totals, policy: Policy) -> OwnDepartures:
    """Return what a rule of its own evicts; the keys of the entries are positions of rows."""
    entries = (
        Entry(TYPES[row[TYPE]], bool(row[HAS_CALLS]), row[TOKENS], None, i, bool(row[PINNED]))
        for i, row in enumerate(rows)
    )
    left = OwnDepartures()
    trim(Head(entries, totals), policy, left)
    return left


@dataclass
class OwnDepartures(Departures):
    """What a rule of its own evicts, of which no eviction is kept. `is_usual` if it gives the
    reasons of the rule that all kinds share.
    """

    is_usual: bool = True

    def append(self, eviction: Eviction) -> None:
        self.extend([eviction])

    def extend(self, evictions: Iterable[Eviction]) -> None:
        positions, calls = self.positions, self.calls
        for entry, reason, because in evictions:
            position = cast("int", entry.key)
            positions.append(position)
            if because is not None:
                calls[position] = cast("int", because.key)
            if reason is not (Reason.CAPACITY if because is None else Reason.ORPHANED):
                self.is_usual = False

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Eviction]:
        return iter(())
