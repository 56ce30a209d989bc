"""The rows of a conversation in the order of its ledger, read in batches.

Messages and stays are numbered in the order of the steps that wrote them, and an index has the
stays by the step that ended them. So the rows of each step are the next ones of their streams, and
memory holds a batch of each. All is to be read within one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import QuerySet

from chatmemory.core.eviction import REASONS
from chatmemory.ledger.contradictions import Contradicted, is_outage, naming
from chatmemory.models import Memory, Message, Stay, Step

BATCH = 500

Row = TypeVar("Row")
Numbered = TypeVar("Numbered", Message, Stay, Step)


class EndedStay(NamedTuple):
    """The end of a stay."""

    n: int
    seq: int
    reason: str | None


class LedgerRows:
    """The rows of a conversation, from its first step or behind another. Ask for those of each
    step in turn.
    """

    def __init__(self, memory: Memory, after: Step | None = None) -> None:
        self._memory = memory
        last_step = after.n if after else 0
        self.last_seq = after.last_seq if after else 0
        self.last_stay = after.last_stay if after else 0
        messages = Message.objects.filter(memory=memory).order_by("seq")
        begun = Stay.objects.filter(memory=memory).order_by("n")
        ended = begun.filter(left_step__isnull=False).order_by("left_step", "n")
        steps = Step.objects.filter(memory=memory).order_by("n")
        if after:  # else none is left out: there may be one that was added below the first
            messages = messages.filter(seq__gt=self.last_seq)
            begun = begun.filter(n__gt=self.last_stay)
            ended = ended.filter(left_step__gt=last_step)
            steps = steps.filter(n__gt=last_step)
        self.steps = _without_gaps(steps, "step", last_step, memory.last_step)
        self._messages = _without_gaps(messages, "message", self.last_seq, memory.last_seq)
        new_stays = _without_gaps(begun, "stay", self.last_stay, memory.last_stay)
        ends = ended.values_list("left_step", *EndedStay._fields).iterator(BATCH)
        self._begun, self._ended = _Stream(new_stays), _Stream(ends)
        self._open: tuple[Any, ...] = (self.steps, self._messages, new_stays, ends)

    def close(self) -> None:
        """Close what is still read. An error keeps it alive, and PostgreSQL's cursors would then be
        closed within some later transaction, which that breaks.
        """
        for rows in self._open:
            rows.close()

    def begun(self, step: int) -> Iterator[tuple[Stay, Message, bool]]:
        """Yield the stays that a step began by number, each with its message, and whether the
        message is a new one. Raises Contradicted.
        """
        stays = self._begun.until(lambda stay: stay.entered_step > step)
        while batch := list(islice(stays, BATCH)):
            returning = [stay.seq for stay in batch if stay.seq <= self.last_seq]
            known = self._known(returning) if returning else {}
            for stay in batch:
                self.last_stay = stay.n
                if stay.seq in known:
                    yield stay, known[stay.seq], False
                else:
                    yield stay, self._next_message(stay), True

    def ended(self, step: int) -> dict[int, EndedStay]:
        """Return the stays that a step ended, by number and in that order."""
        rows = self._ended.until(lambda row: row[0] > step)
        return {n: EndedStay(n, seq, REASONS.get(reason, reason)) for _, n, seq, reason in rows}

    def check_end(self) -> None:
        """Raise Contradicted if there are rows that belong to no step."""
        for stay in self._begun:
            raise Contradicted(stay, f"begins at step {stay.entered_step}, which does not exist")
        for left_step, n, seq, _ in self._ended:
            raise Contradicted(
                Stay(n=n, seq=seq), f"left at step {left_step}, which does not exist"
            )
        for message in self._messages:
            raise Contradicted(message, "never entered the window: it has no stay")

    def _known(self, seqs: list[int]) -> dict[int, Message]:
        rows = Message.objects.filter(memory=self._memory, seq__in=seqs)
        return {row.seq: row for row in rows}

    def _next_message(self, stay: Stay) -> Message:
        """Return the next message, whose first stay this must be."""
        if stay.seq != self.last_seq + 1:
            expected = self.last_seq + 1
            raise Contradicted(stay, f"is of message #{stay.seq}, where #{expected} must be next")
        message = next(self._messages, None)
        if message is None:
            raise Contradicted(stay, f"is of message #{stay.seq}, which does not exist")
        self.last_seq = message.seq
        return message


class _Stream(Generic[Row]):
    """Rows that are taken one by one; the next one can be looked at."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._ahead: list[Row] = []

    def __iter__(self) -> Iterator[Row]:
        yield from self._ahead
        yield from self._rows

    def until(self, is_later: Callable[[Row], bool]) -> Iterator[Row]:
        """Take rows until the next one is later."""
        while self._ahead or self._look_ahead():
            if is_later(self._ahead[0]):
                return
            yield self._ahead.pop()

    def _look_ahead(self) -> bool:
        self._ahead = list(islice(self._rows, 1))
        return bool(self._ahead)


def _without_gaps(
    rows: QuerySet[Numbered], name: str, before: int, last: int
) -> Iterator[Numbered]:
    """Yield rows, which must have the numbers behind `before` up to `last`. Raises Contradicted."""
    found, expected = _all_readable(rows, before + 1), before + 1
    while True:
        with naming(f"{name} {expected}"):
            row = next(found, None)
        if row is None and expected > last:
            return
        if row is not None and _number_of(row) <= before:
            raise Contradicted(row, f"is below the first, which has the number {before + 1}")
        if row is None or expected != _number_of(row):
            raise Contradicted(f"{name} {expected}", f"is missing; the counter is {last}")
        if expected > last:
            raise Contradicted(row, f"is above the counter, which is {last}")
        yield row
        expected += 1


def _all_readable(rows: QuerySet[Numbered], first: int) -> Iterator[Numbered]:
    """Yield rows that are to be numbered from `first`, in batches, up to the first unreadable one.

    Drivers refuse the whole batch of that one, so its rows are read one by one.
    """
    number, expected = "seq" if rows.model is Message else "n", first
    try:
        for row in rows.iterator(BATCH):
            yield row
            expected += 1
    except Exception as error:
        if is_outage(error):
            raise
        yield from rows.filter(**{f"{number}__lt": first})
        for n in range(expected, expected + BATCH):
            yield from rows.filter(**{number: n})
        raise


def _number_of(row: Message | Stay | Step) -> int:
    return row.seq if isinstance(row, Message) else row.n
