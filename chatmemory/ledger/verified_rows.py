"""Reads the rows of a conversation for a verification: each row once, in the order of the
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

from django.db.models import Model, QuerySet

from chatmemory import database
from chatmemory.contradictions import Contradicted, is_outage
from chatmemory.models import Memory, Message, Stay, Step

AT_ONCE = 4_000_000  # bytes of messages that are read at once

# One statement for three tables: it finds no row, and Django writes each query more slowly than a
# database answers this one.
_OTHER_NUMBERS = """SELECT 1 FROM chatmemory_step
    WHERE memory_id = %(id)s AND NOT (n BETWEEN 1 AND %(step)s)
    UNION ALL SELECT 1 FROM chatmemory_message
    WHERE memory_id = %(id)s AND NOT (seq BETWEEN 1 AND %(seq)s)
    UNION ALL SELECT 1 FROM chatmemory_stay
    WHERE memory_id = %(id)s AND NOT (n BETWEEN 1 AND %(stay)s)
    LIMIT 1"""

Row = TypeVar("Row", Step, Stay, Message)
Numbered = TypeVar("Numbered", Step, Stay)


class UnreadableBatch(Contradicted):
    """Raised if a batch of rows has an unreadable row. The database driver returns no row of such a
    batch, so the caller reads the rows one by one.
    """


class LedgerRows:
    """Reads the steps and stays of a conversation for a verification, in batches and in the order
    of the ledger. Raises Contradicted for a row that is missing or cannot be read.
    """

    def __init__(self, memory: Memory, batch: int) -> None:
        self._memory = memory
        self._batch = batch

    def check_numbers(self) -> None:
        """Raise Contradicted if the number of a step, a message or a stay is below 1, or above the
        newest number in the conversation's row.
        """
        memory = self._memory
        if not _has_other_numbers(memory):
            return
        _check_numbers(Step.objects.filter(memory=memory), "n", memory.last_step)
        _check_numbers(Message.objects.filter(memory=memory), "seq", memory.last_seq)
        _check_numbers(Stay.objects.filter(memory=memory), "n", memory.last_stay)

    def steps(self) -> Iterator[Step]:
        for steps in self._batches(Step, self._memory.last_step):
            yield from steps

    def stays(self) -> Iterator[tuple[Stay, Message]]:
        """Yield the stays in the order of their numbers, each with its message."""
        for stays in self._batches(Stay, self._memory.last_stay):
            for part in database.parts_of({stay: stay.size for stay in stays}, AT_ONCE):
                messages = self._read(Message, "seq", [stay.seq for stay in part])
                for stay in part:
                    if stay.seq not in messages:
                        what = f"is missing, but stay {stay.n} refers to it"
                        raise Contradicted(_name(Message, stay.seq), what)
                    yield stay, messages[stay.seq]

    def _batches(self, model: type[Numbered], last: int) -> Iterator[list[Numbered]]:
        """Yield the rows with the numbers 1 to `last`, in batches. Ends at the first missing
        number.
        """
        for first in range(1, last + 1, self._batch):
            numbers = range(first, min(first + self._batch, last + 1))
            rows = self._read(model, "n", numbers)
            found = [rows[n] for n in takewhile(rows.__contains__, numbers)]
            yield found
            if len(found) < len(numbers):
                missing = _name(model, numbers[len(found)])
                raise Contradicted(
                    missing, f"is missing, although the counter of these rows is {last}"
                )

    def _read(self, model: type[Row], number: str, numbers: Sequence[int]) -> dict[int, Row]:
        # Python writes the bounds of a long range faster than each of its numbers.
        chosen: tuple[str, object] = ("in", numbers)
        if isinstance(numbers, range):
            chosen = "range", (numbers[0], numbers[-1])
        rows = model.objects.filter(memory=self._memory, **{f"{number}__{chosen[0]}": chosen[1]})
        try:
            return {getattr(row, number): row for row in rows}
        except Exception as error:
            if is_outage(error):
                raise
            if self._batch > 1:
                raise UnreadableBatch(model, str(error)) from error
            raise Contradicted(_name(model, numbers[0]), f"cannot be read: {error}") from error


def _name(model: type[Step] | type[Stay] | type[Message], number: int) -> str:
    return f"message #{number}" if model is Message else f"{model._meta.model_name} {number}"


def _has_other_numbers(memory: Memory) -> bool:
    """Return whether a step, a message or a stay has a number that was never assigned."""
    last = {"step": memory.last_step, "seq": memory.last_seq, "stay": memory.last_stay}
    with database.cursor() as cursor:
        cursor.execute(_OTHER_NUMBERS, {"id": memory.pk, **last})
        return cursor.fetchone() is not None


def _check_numbers(rows: QuerySet[Model], number: str, last: int) -> None:
    for row in rows.exclude(**{f"{number}__range": (1, last)}).order_by(number)[:1]:
        below, above = (
            "below the first, which has the number 1",
            f"above the counter of these rows, which is {last}",
        )
        raise Contradicted(row, f"is {below if getattr(row, number) < 1 else above}")
