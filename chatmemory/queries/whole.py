"""Whole histories, read in short queries while they are sent.

Every query reads the same step: what is appended meanwhile is not in it. So no transaction is kept
open for a slow reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.core.messages import ChatMessage
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message, Step

SLICE = 500  # messages


class WholeHistory(Iterable[ChatMessage]):
    """What was said up to a step, or until now, read anew each time that it is iterated.

    Iterating raises MemoryNotFound if the conversation was deleted meanwhile, even if another one
    has its id by then: never are there fewer messages than `len` tells.
    """

    def __init__(self, memory: Memory, extent: Memory | Step) -> None:
        self._memory = memory
        self._newest, self._count = extent.last_seq, extent.said_count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ChatMessage]:
        memory, last, read = self._memory, 0, 0
        said = Message.objects.filter(
            memory=memory,
            memory__created_at=memory.created_at,
            seq__lte=self._newest,
            origin=Message.Origin.SAID,
        )
        rows = said.order_by("seq").values_list("memory_id", "seq", "frame", "text", named=True)
        while found := list(rows.filter(seq__gt=last)[:SLICE]):
            yield from map(read_message, found)
            last, read = found[-1].seq, read + len(found)
        if read != self._count:
            raise MemoryNotFound(f"{memory.pk!r} was deleted while it was read")


@one_snapshot()
def whole_history(memory_id: str, at: int | None = None) -> WholeHistory:
    """Return everything that was said up to step `at`. Raises MemoryNotFound, StepNotFound."""
    memory = find_memory(memory_id)
    return WholeHistory(memory, memory if at is None else find_step(memory, at))


def said(memory_id: str, at: int | None = None) -> list[ChatMessage]:
    """Return the same as a list. Raises MemoryNotFound, StepNotFound."""
    return list(whole_history(memory_id, at))
