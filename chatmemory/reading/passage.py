"""Reads a passage: the steps of a conversation after a given step. Data derived up to that step,
such as incidents, is brought up to date from the passage alone.

A passage has its messages, and the windows between its steps. These windows are built from the
stored stays (a stay is one period of a message in the window), without applying any policy again.
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
    """A stay: one period of a message in the window. `n` is its number, `entered` the step at which
    it began.

    `left` is the step at which the stay ended, None while it lasts, and `reason` is why it ended.
    `rank` is the position by which the window is ordered.
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
        """Whether the message was evicted when the stay ended. This is False if only its position
        or text changed, or if another system message replaced it.
        """
        return self.left is not None and self.reason not in _IN_HISTORY_OR_REPLACED


class Said(NamedTuple):
    """A message that a step added. `is_said` is False if it is not in history, such as a summary.

    `at` is the time of the message, or None if the source had no time. `is_copy` marks a message
    that a branch copied from another conversation; its time is None, too.
    """

    seq: int
    type: str
    at: datetime | None
    is_said: bool
    is_copy: bool


class PassageStep(NamedTuple):
    """A step of the ledger, with the messages that the step added, `said`.

    `at` is the time of the newest of these messages, or the time of the step if no message has a
    time. None if the step was imported and no message has a time.
    """

    n: int
    kind: str
    at: datetime | None
    said: Sequence[Said]


@dataclass
class PastWindow:
    """The window between two steps. `held` maps the number of each stay to the stay, in the order
    of the window. A stay is one period of a message in the window, and its `rank` is the message's
    position.

    `broken` is the lowest rank at which the window has changed since the last call of `begin`. It
    is None if messages were only appended.
    """

    held: dict[int, Held] = field(default_factory=dict)
    tokens: int = 0
    broken: int | None = None

    def begin(self) -> None:
        self.broken = None

    def apply(self, ended: Sequence[Held], begun: Sequence[Held]) -> None:
        """Change the window as a step did: remove the stays that `ended`, and add the stays that
        were `begun`. A stay is a period of a message in the window.

        Leave out of `begun` each stay that ended in the same step.
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
        """Return the sum of tokens of the messages before a rank."""
        found = 0
        for each in self.held.values():
            if each.rank >= rank:
                break
            found += each.tokens
        return found


class Passage:
    """The steps of a conversation after step `after`, with their messages and windows.

    An earlier step as `from_step` makes the passage begin after that step. Use a passage within one
    database snapshot. Its properties raise CorruptRow for a message that cannot be read.
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
        """The stays (periods of messages in the window) that lasted beyond step `from_step` or
        began later, in the order of the window.
        """
        lasting = Q(left_step=None) | Q(left_step__gt=self.from_step)
        rows = Stay.objects.filter(lasting, memory=self.memory).order_by("rank", "n")
        columns = ("n", "seq", "entered_step", "left_step", "reason", "rank", "type", "tokens")
        return [Held(*row) for row in rows.values_list(*columns)]

    @cached_property
    def messages(self) -> Mapping[int, ChatMessage]:
        """The messages of all windows between the passage's steps, by seq."""
        seqs = {each.seq for each in self.held}
        rows = Message.objects.filter(database.in_list("seq", seqs), memory=self.memory)
        return {row.seq: read_message(row) for row in rows.order_by("seq")}

    def walk(self) -> Iterator[tuple[PassageStep, PastWindow, Sequence[Held]]]:
        """Yield each step with the window before it, and the stays (periods of messages in the
        window) that end with the step.

        The window is always the same object, which is changed before the next step: copy what you
        keep.
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
