"""The stretches in which long conversations are read: of 500 messages each.

Incidents and lost terms up to the last full stretch are settled: they are found once, among the
newest 10,000 messages, or 4 million characters. In later messages they are found after each change,
among these messages, the stretch before, and the messages in memory when that stretch began. So a
change costs the same however long the conversation is.
"""

from __future__ import annotations

from chatmemory.ledger.lookup import find_step
from chatmemory.models import Memory
from chatmemory.reading.history import first_of_newest

STRETCH = 500  # messages


def settled_until(last_seq: int) -> int:
    """Return the seq of the last settled message: no later message changes the incidents up to it.
    It is 0 for a short conversation, which is read as a whole.
    """
    full = last_seq - last_seq % STRETCH
    return full if full > STRETCH else 0


def was_settled_at(memory: Memory, step: int) -> int:
    """Return the seq of the last settled message at a step. Raises StepNotFound."""
    return settled_until(find_step(memory, step).last_seq)


def first_behind(memory: Memory, settled: int) -> int:
    """Return the seq of the first message that is read after each change."""
    if settled:
        return max(1, settled - STRETCH + 1)
    return first_of_newest(memory.pk, memory.last_seq)
