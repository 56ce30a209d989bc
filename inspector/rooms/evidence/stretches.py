"""Divides long conversations into stretches of 500 messages. So after a change, the search for
incidents and lost terms does not read the whole conversation again.

Messages up to the end of the last full stretch are "settled". Their incidents and lost terms are
found once, and later messages cannot change them. Only the newest 10,000 messages are searched, or
fewer if they have more than 4 million characters.

Incidents and lost terms of the messages after the last full stretch are found again after each
change. For this, the last full stretch and all later messages are read, and the messages that were
in memory when this stretch began.
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
    """Return the seq of the last "settled" message; 0 for a short conversation, which is read as a
    whole.

    Later messages cannot change the incidents and losses up to a settled message.
    """
    full = last_seq - last_seq % STRETCH
    return full if full > STRETCH else 0


def settled_part(
    memory: Memory,
    before: KeptRow | None,
    read: Callable[[KeptRow], Known],
    find: Callable[[Memory, int], Known],
) -> Known | None:
    """Return the incidents or losses up to the last settled message, which later messages cannot
    change. Return None if no message is settled.

    `before` is the stored row. If its last settled message is still the last, `read` returns the
    incidents or losses of the row. Otherwise, or if the row cannot be read, `find` computes them up
    to the seq that it gets.
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
    """Return the seq of the first message to read after a change. `settled` is the last settled
    message, or 0.
    """
    if settled:
        return max(1, settled - STRETCH + 1)
    return first_of_newest(memory.pk, memory.last_seq)
