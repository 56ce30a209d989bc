"""Anchoring of a conversation that is older than the chain of digests, in short transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chatmemory import database
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.ledger import anchoring
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Memory
from chatmemory.services import audit
from chatmemory.services.transaction import lock_memory


def not_anchored() -> list[str]:
    """Return the ids of the conversations with rows that are older than the chain."""
    rows = Memory.objects.filter(anchoring.NOT_ANCHORED).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def anchor(memory_id: str) -> Memory:
    """Give digests to the rows that are older than the chain, and return the conversation.

    Others may write meanwhile. Whoever is interrupted calls it again. Raises MemoryNotFound, also
    for a conversation that was deleted meanwhile.
    """
    memory = find_memory(memory_id)
    if not Memory.objects.filter(anchoring.NOT_ANCHORED, pk=memory_id).exists():
        return memory
    with _locked(memory) as row:
        anchoring.begin(row)
    seq: int | None = 0
    while seq is not None:
        with _locked(memory) as row:
            seq = anchoring.commit_messages(row, after=seq)
    step = 0
    while digests := _missing_digests(memory_id, after=step):
        step, _ = digests[-1]
        with _locked(memory) as row:
            anchoring.store_digests(row, digests)
    with _locked(memory) as row:
        anchoring.finish(row)
        head = bytes(row.head or b"").hex()
        line = f"anchor {memory_id!r} at step {row.anchored_step}"
        audit.log(line, action="anchor", actor="anchor_ledger", memory_id=memory_id, head=head)
    return row


def _missing_digests(memory_id: str, after: int) -> anchoring.Digests:
    with one_snapshot():
        return anchoring.missing_digests(find_memory(memory_id), after)


@contextmanager
def _locked(memory: Memory) -> Iterator[Memory]:
    """Lock the conversation. Raises MemoryNotFound if another has its id by now."""
    with database.atomic():
        row = lock_memory(memory.pk)
        if row.created_at != memory.created_at:
            raise MemoryNotFound(f"{memory.pk!r} was deleted meanwhile")
        yield row
