"""Reads the index in memory: the message that lists exact terms of evicted messages."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from chatmemory.exceptions import MessageNotFound
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message
from chatmemory.recall.index import Index, Row, index_of


@dataclass(frozen=True)
class IndexInMemory:
    """The index of exact terms in a window. `seq` is the seq of the index message."""

    seq: int
    index: Index

    @cached_property
    def terms(self) -> dict[int, tuple[str, ...]]:
        """The terms that the index lists, by the seqs of the evicted messages that contained them.
        If more than 8 messages contained a term, the term is only under the newest 8 seqs.
        """
        found: dict[int, list[str]] = {}
        for row in self.index.listed:
            for seq in row.sources:
                found.setdefault(seq, []).append(row.term)
        return {seq: tuple(terms) for seq, terms in found.items()}


def index_row(memory_id: str, seq: int, number: int) -> Row:
    """Return row `number` of the index in message `seq`. The first row has the number 1. Raises
    MessageNotFound if there is no such index or row.
    """
    message = Message.objects.filter(memory_id=memory_id, seq=seq).first()
    index = index_of(read_message(message)) if message else None
    if index is None or not 0 < number <= len(index.rows):
        raise MessageNotFound(
            f"the conversation {memory_id!r} has no index #{seq} with a term {number}"
        )
    return index.rows[number - 1]


def index_among(memory_id: str, seqs: Collection[int]) -> IndexInMemory | None:
    """Return the index whose message is one of the messages `seqs`. None if none of these messages
    is an index.
    """
    if not seqs:
        return None
    synthetic = Message.objects.filter(origin=Message.Origin.SYNTHETIC)
    rows = synthetic.filter(memory_id=memory_id, seq__in=seqs, frame__contains='"index":')
    found = ((row.seq, index_of(read_message(row))) for row in rows)
    return next((IndexInMemory(seq, index) for seq, index in found if index), None)
