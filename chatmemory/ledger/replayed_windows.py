"""The windows of a replay, whose entries have their message only where a decision needs it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet

from chatmemory.core.window import Entry, EntrySource, Totals, Window
from chatmemory.ledger.contradictions import Contradicted
from chatmemory.ledger.counters import unprotected
from chatmemory.ledger.stored_window import StoredStays
from chatmemory.models import Stay, Step


def window_of(stays: QuerySet[Stay], totals: Totals) -> Window:
    """Return a window that is read from its stays, as far as it is needed."""
    return Window(_StaysOf(stays), totals)


def passed_window(stays: QuerySet[Stay], totals: Totals) -> Window:
    """Return a window that keeps nothing of what is read, and is not to be changed."""
    return _PassedWindow(_StaysOf(stays), totals)


def check_bound(step: Step) -> None:
    """Check that the bound of a step is one. Raises Contradicted."""
    if step.oldest > step.last_stay + 1:
        raise Contradicted(step, f"oldest {step.oldest} is above all stays")


def check_oldest(step: Step, window: Window) -> None:
    """Check the bound of a step against the window that it left. Raises Contradicted."""
    for entry in unprotected(window):
        if entry.n < step.oldest:
            raise Contradicted(step, f"oldest is {step.oldest}, but stay {entry.n} is open")
        if step.kind == Step.Kind.ADD:
            return


class _PassedWindow(Window):
    def __init__(self, source: EntrySource, totals: Totals) -> None:
        super().__init__(source, totals)
        self._entries = source.entries

    def __iter__(self) -> Iterator[Entry]:
        return self._entries()

    taken = __iter__


class _StaysOf(StoredStays):
    """Stays whose entries have their message where the window needs it: system messages."""

    def entries(self) -> Iterator[Entry]:
        systems = {entry: entry for entry in self.systems()}
        for entry in super().entries():
            yield systems.get(entry, entry)
