"""What leaves a window that is read from columns: positions of its rows instead of evictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import cast

from chatmemory.core.eviction import Eviction, Head, Reason
from chatmemory.core.long_lists import Columns
from chatmemory.core.messages import TYPES
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import trim
from chatmemory.core.window import Entry, Totals

PINNED = 5  # the column of places behind `entered_step`
MADE_AT_ONCE = 1_000  # entries


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
    is_pinned = any(map(itemgetter(PINNED), rows))
    head = Head(_entries(rows), totals) if is_pinned else _RowsHead(rows, totals)
    left = OwnDepartures()
    trim(head, replace(policy, snap_to_user=False), left)
    trimmed = len(left)
    if trimmed and policy.snap_to_user:
        left.positions += [cast("int", each.entry.key) for each in policy.snap(head)]
    left.rest = len(left) - trimmed
    return left


def _entries(rows: Sequence[Columns]) -> Iterator[Entry]:
    for start in range(0, len(rows), MADE_AT_ONCE):
        yield from _made(rows, start)


def _made(rows: Sequence[Columns], start: int) -> list[Entry]:
    """Return the entries of some rows, from a position on."""
    types, part = TYPES, enumerate(rows[start : start + MADE_AT_ONCE], start)
    return [
        Entry(types[type], has_calls == 1, tokens, None, i, pinned == 1)
        for i, (_, type, has_calls, tokens, _, pinned) in part
    ]


class _RowsHead(Head):
    """A head of rows of which none is pinned, which makes many entries at once."""

    def __init__(self, rows: Sequence[Columns], totals: Totals) -> None:
        super().__init__((), totals)
        self._rows, self._made = rows, 0

    def peek(self, position: int = 0) -> Entry | None:
        front = self._front
        while len(front) <= position and self._made < len(self._rows):
            removed, made = self._removed, _made(self._rows, self._made)
            self._made += len(made)
            front.extend([each for each in made if each.key not in removed] if removed else made)
        return front[position] if position < len(front) else super().peek(position)


@dataclass
class OwnDepartures(Departures):
    """What a rule of its own evicts, of which no eviction is kept. `is_usual` if it gives the
    reasons of the rule that all kinds share.
    """

    is_usual: bool = True

    def append(self, eviction: Eviction) -> None:
        self.extend([eviction])

    def extend(self, evictions: Iterable[Eviction]) -> None:
        capacity, orphaned = Reason.CAPACITY, Reason.ORPHANED
        calls = cast("dict[object, object]", self.calls)  # the keys are positions
        leave = cast("Callable[[object], None]", self.positions.append)
        for entry, reason, because in evictions:
            leave(entry.key)
            if because is not None:
                calls[entry.key] = because.key
            if reason is not (capacity if because is None else orphaned):
                self.is_usual = False

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Eviction]:
        return iter(())
