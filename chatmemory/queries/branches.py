"""Branches of conversations, and the copies of messages that an erasure may also reach."""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory.core.exceptions import MessageNotFound
from chatmemory.core.given import storable_id
from chatmemory.ledger.branches import branches_of, copies_of
from chatmemory.models import Message


def branches(memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of the branches of some conversations, and of their branches in turn."""
    return branches_of(memory_ids)


def copies(memory_id: str, seq: int) -> list[tuple[str, int]]:
    """Return the copies of a message in branches, by id and seq; none of a redacted message.

    Raises MessageNotFound, UnstorableText.
    """
    row = Message.objects.filter(memory_id=storable_id(memory_id), seq=seq).first()
    if row is None:
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    found = copies_of(row) if row.redacted_step is None else []
    return [(copy.memory_id, copy.seq) for copy in found]
