"""Divides long conversations into stretches of 500 messages, so that a change does not need a new
search of the whole conversation. The search is for incidents and lost terms.

In a conversation with two or more full stretches, messages up to the end of the last full stretch
are "settled". Their incidents and lost terms are stored, and later messages cannot change them.

- After each change, the search reads the last settled stretch and all later messages. It also reads
  the messages that were in memory when that stretch began.
- When a further stretch is settled, the settled messages are searched once more.
- Without settled messages, each search reads the whole conversation.

A search covers at most the newest 10,000 messages, and fewer if they have more than 4 million
characters.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from chatmemory.exceptions import CorruptRow
from chatmemory.kept import KeptRow
from chatmemory.ledger.lookup import find_step
from chatmemory.models import Memory
from inspector.rooms.evidence.messages import first_of_newest

STRETCH = 500  # messages

Known = TypeVar("Known")


def settled_until(last_seq: int) -> int:
    """Return the seq of the last "settled" message: the end of the last full stretch of 500
    messages. Return 0 if `last_seq` is less than 1,000.

    Later messages do not change the incidents and lost terms of settled messages.
    """
    full = last_seq - last_seq % STRETCH
    return full if full > STRETCH else 0


def settled_part(
    memory: Memory,
    before: KeptRow | None,
    read: Callable[[KeptRow], Known],
    find: Callable[[Memory, int], Known],
) -> Known | None:
    """Return the incidents or lost terms up to the last settled message. None if no message is
    settled.

    `before` is the conversation's row of an earlier step, or None. If no message was settled since
    that step, the result is `read(before)`. Otherwise, or if the row is corrupt, the result is
    `find(memory, seq)`, with the seq of the last settled message.
    """
    settled = settled_until(memory.last_seq)
    if not settled:
        return None
    with suppress(CorruptRow):
        if before is not None and _settled_at(memory, before.step) == settled:
            return read(before)
    return find(memory, settled)


def _settled_at(memory: Memory, step: int) -> int:
    return settled_until(find_step(memory, step).last_seq)


def first_behind(memory: Memory, settled: int) -> int:
    """Return the seq of the first message to search after a change: the beginning of the last
    settled stretch.

    `settled` is the seq of the last settled message, or 0 if no message is settled. For 0, the
    search begins at the message that `first_of_newest` returns.
    """
    if settled:
        return max(1, settled - STRETCH + 1)
    return first_of_newest(memory.pk, memory.last_seq)
