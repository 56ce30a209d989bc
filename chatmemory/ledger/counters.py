"""The running numbers of a conversation: the newest of each kind of row, and what history holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import Change
from chatmemory.core.window import Window
from chatmemory.ledger.entries import NumberedTransition, StayEntry, stay_entries
from chatmemory.models import Memory, Message, Step


@dataclass(frozen=True)
class Counters:
    """Numbers that a Memory row and each Step carry.

    No open stay has a number below `oldest`, a leading system message excepted: with it a past
    window is found by a range of numbers. Up to `ordered_from` the numbers of the open stays and
    their ranks may disagree, because a whole list was set in an order of its own.
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
        return cls(**{each.name: getattr(row, each.name) for each in fields(cls)})

    @classmethod
    def at(cls, step: Step, ordered_from: int) -> Self:
        """The numbers as they were after a step."""
        names = (
            each.name for each in fields(cls) if each.name not in ("last_step", "ordered_from")
        )
        values = {name: getattr(step, name) for name in names}
        return cls(last_step=step.n, ordered_from=ordered_from, **values)

    def put_into(self, row: Memory) -> None:
        for each in fields(self):
            setattr(row, each.name, getattr(self, each.name))

    def after(self, change: NumberedTransition, window: Window) -> Counters:
        """The numbers after a transition, which `window` has gone through."""
        new = [entry for entry in change.entering if entry.seq > self.last_seq]
        said = [entry for entry in new if entry.origin == Message.Origin.SAID]
        counters = replace(
            self,
            last_step=self.last_step + 1,
            last_seq=self.last_seq + len(new),
            last_stay=self.last_stay + len(change.entering),
            said_count=self.said_count + len(said),
            history_tokens=self.history_tokens + sum(entry.tokens for entry in said),
        )
        transition = change.transition
        grows = transition.after.count > transition.before.count > 0
        if grows or transition.change is Change.KEEP:
            return counters
        return replace(counters, oldest=counters._oldest_in(window))

    def reordered(self, window: Window) -> Counters:
        """The same numbers after a whole list was set: O(window)."""
        numbers = (entry.n for entry in _behind_system(window))
        oldest = min(numbers, default=self.last_stay + 1)
        return replace(self, oldest=oldest, ordered_from=self.last_stay)

    def _oldest_in(self, window: Window) -> int:
        """The number of the first open stay, or a bound below it where ranks say nothing."""
        first = next(_behind_system(window), None)
        if first is None:
            return self.last_stay + 1
        return first.n if first.n > self.ordered_from else self.oldest


def _behind_system(window: Window) -> Iterator[StayEntry]:
    """The entries of a stored window without a leading system message."""
    for position, entry in enumerate(stay_entries(window)):
        if position or entry.type is not MessageType.SYSTEM:
            yield entry
