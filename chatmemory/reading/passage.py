"""Reads a passage: the steps of a conversation after a given step, and the windows between them.
Keepers bring derived data up to date from a passage.

The windows are built from the stored stays. No policy is applied again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import Q

from chatmemory import database
from chatmemory.ledger.windows import read_message
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.windows.eviction import IN_PLACE, Reason

_IN_HISTORY_OR_REPLACED = (*IN_PLACE, Reason.REPLACED)


class Held(NamedTuple):
    """A stay of a message in memory, from step `entered` to step `left` (None while it lasts).

    `n` is the number of the stay, `seq` that of the message, and `reason` why the stay ended. In a
    window, stays with a lower `rank` come first.
    """

    n: int
    seq: int
    entered: int
    left: int | None
    reason: str | None
    rank: int
    type: str
    tokens: int

    @property
    def is_eviction(self) -> bool:
        """Whether the stay ended by an eviction. False if the message only moved, got another text,
        or is a system message that was replaced.
        """
        return self.left is not None and self.reason not in _IN_HISTORY_OR_REPLACED


class Said(NamedTuple):
    """A message that a step added. `is_said` is False if the message is not in history, such as a
    summary.

    `at` is the time of the message; None if an imported file gave no time, or if a branch copied
    the message (`is_copy`).
    """

    seq: int
    type: str
    at: datetime | None
    is_said: bool
    is_copy: bool


class PassageStep(NamedTuple):
    """A step of the ledger. `said` are the messages that the step added.

    `at` is the time of the newest of these messages that has a time. If none has a time, `at` is
    the time of the step, or None for an import.
    """

    n: int
    kind: str
    at: datetime | None
    said: Sequence[Said]


@dataclass
class PastWindow:
    """The window between two steps. `held` maps numbers of stays to the stays, in the order of the
    window. `tokens` is the sum of their tokens.

    `broken` is the lowest rank at which the window has changed since the last call of the method
    `begin`. None if messages were only appended.
    """

    held: dict[int, Held] = field(default_factory=dict)
    tokens: int = 0
    broken: int | None = None

    def begin(self) -> None:
        self.broken = None

    def apply(self, ended: Sequence[Held], begun: Sequence[Held]) -> None:
        """Change the window as a step did. `ended` are the stays that ended with the step, and
        `begun` those that began with it.

        A stay that both began and ended with the step must not be in `begun`.
        """
        for each in ended:
            if self.held.pop(each.n, None) is not None:
                self.tokens -= each.tokens
                self._break_at(each.rank)
        last = next(reversed(self.held.values()), None)
        is_in_order = True
        for each in begun:
            if last is not None and each.rank < last.rank:
                is_in_order = False
                self._break_at(each.rank)
            self.held[each.n] = last = each
            self.tokens += each.tokens
        if not is_in_order:
            self.held = dict(sorted(self.held.items(), key=lambda item: item[1].rank))

    def _break_at(self, rank: int) -> None:
        self.broken = rank if self.broken is None else min(self.broken, rank)

    def tokens_before(self, rank: int) -> int:
        """Return the sum of the tokens of all messages in the window whose rank is lower than
        `rank`.
        """
        found = 0
        for each in self.held.values():
            if each.rank >= rank:
                break
            found += each.tokens
        return found


class Passage:
    """The steps of a conversation after step `from_step`, with their messages and windows. Keepers
    read a passage to update derived data.

    - `after`: the last step that the derived data already includes.
    - `from_step`: at most `after`, which is the default. A keeper that needs earlier steps gives a
      lower number.

    Use a passage within one database snapshot. Raises CorruptRow for a message that cannot be read.
    """

    def __init__(self, memory: Memory, after: int = 0, from_step: int | None = None) -> None:
        self.memory, self.after = memory, after
        self.from_step = after if from_step is None else min(after, from_step)

    @cached_property
    def steps(self) -> list[PassageStep]:
        """The steps after `from_step`."""
        rows = Step.objects.filter(memory=self.memory, n__gt=self.from_step).order_by("n")
        found, last = [], self._last_seq
        said = self._said()
        for n, kind, own, note, newest in rows.values_list("n", "kind", "at", "note", "last_seq"):
            new = [
                _said(row, own, note)
                for seq in range(last + 1, newest + 1)
                if (row := said.get(seq)) is not None
            ]
            times = [each.at for each in new if each.at]
            at = times[-1] if times else None if note == Step.IMPORTED else own
            found.append(PassageStep(n, kind, at, new))
            last = max(last, newest)
        return found

    @cached_property
    def _last_seq(self) -> int:
        if not self.from_step:
            return 0
        rows = Step.objects.filter(memory=self.memory, n=self.from_step)
        return next(iter(rows.values_list("last_seq", flat=True)), 0)

    def _said(self) -> dict[int, tuple[int, str, str, datetime]]:
        rows = Message.objects.filter(memory=self.memory, seq__gt=self._last_seq)
        return {row[0]: row for row in rows.values_list("seq", "type", "origin", "said_at")}

    @cached_property
    def held(self) -> list[Held]:
        """The stays that lasted beyond step `from_step` or began later, in the order of the
        window.
        """
        lasting = Q(left_step=None) | Q(left_step__gt=self.from_step)
        rows = Stay.objects.filter(lasting, memory=self.memory).order_by("rank", "n")
        columns = ("n", "seq", "entered_step", "left_step", "reason", "rank", "type", "tokens")
        return [Held(*row) for row in rows.values_list(*columns)]

    @cached_property
    def messages(self) -> Mapping[int, ChatMessage]:
        """The messages that were in memory right after `from_step` or at any later step, by seq."""
        seqs = {each.seq for each in self.held}
        rows = Message.objects.filter(database.in_list("seq", seqs), memory=self.memory)
        return {row.seq: read_message(row) for row in rows.order_by("seq")}

    def walk(self) -> Iterator[tuple[PassageStep, PastWindow, Sequence[Held]]]:
        """Yield each step with the window before it, and the stays that end with it.

        The window is one object, which changes with each step. Copy what you keep.
        """
        window = PastWindow()
        first = [each for each in self.held if each.entered <= self.from_step]
        window.apply((), first)
        window.begin()
        ended: dict[int, list[Held]] = {}
        begun: dict[int, list[Held]] = {}
        for each in self.held:
            if each.left is not None:
                ended.setdefault(each.left, []).append(each)
            if each.entered > self.from_step and each.left != each.entered:
                begun.setdefault(each.entered, []).append(each)
        for step in self.steps:
            leaving = ended.get(step.n, ())
            yield step, window, leaving
            window.apply(leaving, begun.get(step.n, ()))


def _said(row: tuple[int, str, str, datetime], step_at: datetime, note: str) -> Said:
    seq, type, origin, at = row
    is_copy = note == Step.BRANCHED and at != step_at
    is_timed = not is_copy and not (note == Step.IMPORTED and at == step_at)
    return Said(seq, type, at if is_timed else None, origin == Message.Origin.SAID, is_copy)
