"""The counters of a conversation: the newest number of each kind of row, and history totals."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple, Self

from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import Change
from chatmemory.core.window import Window
from chatmemory.ledger.entries import NumberedTransition, StayEntry, stay_entries
from chatmemory.models import Memory, Message, Step


class Counters(NamedTuple):
    """The counters that the Memory row and each Step carry.

    `oldest` is a lower bound for the numbers of the open stays, except for pinned messages and a
    leading system message. It makes past windows cheap to read: without it, the stays that were
    open at a step could have any number, and the query would scan all stays before that step. With
    it, the query reads a range of the primary key that is about as long as the window.

    `ordered_from` is the number of the newest stay when a whole list was last set, or a message
    pinned or unpinned. Above it, the order by number is the order by rank, so the first open stay
    has the lowest number. Up to it the two orders may differ; then `oldest` keeps its value,
    which is still a lower bound because stays that begin later have higher numbers.
    """

    last_step: int = 0
    last_seq: int = 0
    last_stay: int = 0
    said_count: int = 0
    history_tokens: int = 0
    oldest: int = 1
    ordered_from: int = 0

    @classmethod
    def of(cls, row: Memory) -> Self:
        """Return the counters of a Memory row."""
        return cls(*_counters_of(row))

    @classmethod
    def at(cls, step: Step, ordered_from: int) -> Self:
        """Return the counters after a step."""
        names = {*_NAMES} - {"last_step", "ordered_from"}
        values = {name: getattr(step, name) for name in names}
        return cls(last_step=step.n, ordered_from=ordered_from, **values)

    def put_into(self, row: Memory) -> None:
        for name in _NAMES:
            setattr(row, name, getattr(self, name))

    def after(self, change: NumberedTransition, window: Window) -> Counters:
        """Return the counters after a transition that was applied to `window`."""
        new = [entry for entry in change.entering if entry.seq > self.last_seq]
        said = [entry for entry in new if entry.origin == Message.Origin.SAID]
        transition, last_stay = change.transition, self.last_stay + len(change.entering)
        oldest, ordered_from = self.oldest, self.ordered_from
        # A window that only grew has the same first entry. Not reading it saves a query in every
        # add that evicts nothing.
        grows = transition.after.count > transition.before.count > 0
        if transition.change is Change.PIN:
            # A system message behind what was unpinned no longer leads.
            oldest = min([oldest, *(entry.n for entry in unprotected(window))])
            ordered_from = last_stay
        elif not grows and transition.change is not Change.KEEP:
            oldest = self._oldest_in(window, last_stay)
        return Counters(
            last_step=self.last_step + 1,
            last_seq=self.last_seq + len(new),
            last_stay=last_stay,
            said_count=self.said_count + len(said),
            history_tokens=self.history_tokens + sum(entry.tokens for entry in said),
            oldest=oldest,
            ordered_from=ordered_from,
        )

    def reordered(self, window: Window) -> Counters:
        """Return the counters after a whole list was set. This reads the window."""
        numbers = (entry.n for entry in unprotected(window))
        oldest = min(numbers, default=self.last_stay + 1)
        return self._replace(oldest=oldest, ordered_from=self.last_stay)

    def _oldest_in(self, window: Window, last_stay: int) -> int:
        """Return the number of the first open stay, or a lower bound up to `ordered_from`."""
        first = next(unprotected(window), None)
        if first is None:
            return last_stay + 1
        return first.n if first.n > self.ordered_from else self.oldest


_NAMES = Counters._fields
_counters_of = attrgetter(*_NAMES)


def unprotected(window: Window) -> Iterator[StayEntry]:
    """Yield the entries of a stored window without pinned ones and a leading system message."""
    is_first = True
    for entry in stay_entries(window):
        if entry.pinned:
            continue
        if not is_first or entry.type is not MessageType.SYSTEM:
            yield entry
        is_first = False
