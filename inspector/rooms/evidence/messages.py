"""Reads the messages of a conversation that are searched for incidents and losses."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models.functions import Length

from chatmemory import ChatMessage
from chatmemory.ledger.sql import messages_by_seq
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message
from chatmemory.reading.history import messages_until

# Facts are looked for in the latest messages, up to so many messages and characters.
NEWEST_MESSAGES, NEWEST_CHARACTERS = 10_000, 4_000_000


def injected_between(memory: Memory, first: int, last: int) -> dict[int, ChatMessage]:
    """Return the messages from `first` to `last` that are not in history, such as summaries. The
    keys are seqs.
    """
    rows = Message.objects.filter(memory=memory, seq__gte=first, seq__lte=last)
    return {row.seq: read_message(row) for row in rows.filter(origin=Message.Origin.SYNTHETIC)}


def messages_of(memory_id: str, seqs: Collection[int]) -> dict[int, ChatMessage]:
    """Return the given messages of a conversation by seq."""
    if not seqs:
        return {}
    return {row.seq: read_message(row) for row in messages_by_seq(memory_id, seqs)}


def first_of_newest(memory_id: str, last: int) -> int:
    """Return the seq of the first message to search for incidents and losses, if the search ends at
    message `last`.

    The newest 10,000 messages are searched, or fewer if they have more than 4 million characters
    together.
    """
    first, left = 1, NEWEST_CHARACTERS
    size = Length("text") + Length("frame")
    sizes = messages_until(memory_id, last).order_by("-seq").values_list("seq", size)
    for seq, characters in sizes[:NEWEST_MESSAGES].iterator():
        left -= characters
        if left < 0:
            return first
        first = seq
    return first
