"""Whole windows and histories, read in short queries while they are sent.

Every query reads the same step: what is appended meanwhile is not in it, and what leaves the window
later was in it then. So no transaction is kept open for a slow reader.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from django.db.models import QuerySet

from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.core.messages import ChatMessage
from chatmemory.ledger.entries import MessageRow, read_message
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_window import open_stays
from chatmemory.models import Memory, Message
from chatmemory.queries.window_rows import WindowPlace, WindowView
from chatmemory.queries.windows import outline

SLICE = 500  # messages

Rows = QuerySet[Message, MessageRow]
Slices = Callable[[Rows], Iterator[Sequence[MessageRow]]]


class WholeList(Iterable[ChatMessage]):
    """A list of messages in order, read anew each time that it is iterated.

    Iterating raises MemoryNotFound if the conversation was deleted meanwhile, even if another one
    has its id by then: never are there fewer messages than `len` tells.
    """

    def __init__(self, memory: Memory, count: int, slices: Slices) -> None:
        self._memory = memory
        self._count = count
        self._slices = slices

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ChatMessage]:
        memory, read = self._memory, 0
        rows = Message.objects.filter(memory=memory, memory__created_at=memory.created_at)
        for each in self._slices(rows.values_list("memory_id", "seq", "frame", "text", named=True)):
            yield from map(read_message, each)
            read += len(each)
        if read != self._count:
            raise MemoryNotFound(f"{memory.pk!r} was deleted while it was read")


@one_snapshot()
def whole_history(memory_id: str, at: int | None = None) -> WholeList:
    """Return everything that was said up to step `at`. Raises MemoryNotFound, StepNotFound."""
    memory = find_memory(memory_id)
    extent = memory if at is None else find_step(memory, at)
    newest = extent.last_seq

    def slices(rows: Rows) -> Iterator[Sequence[MessageRow]]:
        said = rows.filter(seq__lte=newest, origin=Message.Origin.SAID).order_by("seq")
        last = 0
        while found := list(said.filter(seq__gt=last)[:SLICE]):
            yield found
            last = found[-1].seq

    return WholeList(memory, extent.said_count, slices)


def said(memory_id: str, at: int | None = None) -> list[ChatMessage]:
    """Return the same as a list. Raises MemoryNotFound, StepNotFound."""
    return list(whole_history(memory_id, at))


@one_snapshot()
def whole_window(
    memory_id: str, at: int | None = None
) -> tuple[WindowView[WindowPlace], WholeList]:
    """Return the window at step `at`, and its messages. Raises MemoryNotFound, StepNotFound."""
    window = outline(memory_id, at)
    return window, _numbered(find_memory(memory_id), (row.seq for row in window.rows))


@one_snapshot()
def stored_messages(memory_id: str) -> WholeList:
    """Return the messages of the current window, untrimmed. Raises MemoryNotFound."""
    memory = find_memory(memory_id)
    seqs = open_stays(memory_id).values_list("seq", flat=True)
    return _numbered(memory, seqs.iterator(SLICE))


def _numbered(memory: Memory, seqs: Iterable[int]) -> WholeList:
    """Return the messages with these numbers."""
    numbers = array("q", seqs)

    def slices(rows: Rows) -> Iterator[Sequence[MessageRow]]:
        for start in range(0, len(numbers), SLICE):
            wanted = numbers[start : start + SLICE]
            # PostgreSQL without statistics would read the whole conversation for a list alone.
            extent = rows.filter(seq__range=(min(wanted), max(wanted)))
            found = {row.seq: row for row in extent.filter(seq__in=list(wanted))}
            yield [found[seq] for seq in wanted if seq in found]

    return WholeList(memory, len(numbers), slices)
