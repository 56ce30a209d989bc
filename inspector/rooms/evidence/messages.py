"""Messages of a conversation by seq, and messages that clients put into its window."""

from __future__ import annotations

from collections.abc import Collection

from chatmemory import ChatMessage, database
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message


def injected_between(memory: Memory, first: int, last: int) -> dict[int, ChatMessage]:
    """Return the messages that a client put into the window, such as summaries, from the seq
    `first` to `last`.
    """
    rows = Message.objects.filter(memory=memory, seq__gte=first, seq__lte=last)
    return {row.seq: read_message(row) for row in rows.filter(origin=Message.Origin.SYNTHETIC)}


def messages_of(memory_id: str, seqs: Collection[int]) -> dict[int, ChatMessage]:
    """Return some messages of a conversation by seq."""
    if not seqs:
        return {}
    rows = Message.objects.filter(database.in_list("seq", seqs), memory_id=memory_id)
    return {row.seq: read_message(row) for row in rows}
