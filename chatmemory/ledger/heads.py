"""Heads that were kept elsewhere; see `chain`."""

from __future__ import annotations

from chatmemory.ledger import chain
from chatmemory.ledger.contradictions import Contradiction
from chatmemory.models import AuditEntry, Memory, Step


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Return what contradicts a head that was kept at a step (in hexadecimal), or None.

    A missing step or conversation contradicts it, unless its deletion was audited since.
    """
    found = _heads_at(memory_id, step)
    if head in found:
        return None
    if found:
        what = "its digest is not the one that was kept"
    elif _was_deleted(memory_id, step):
        return None
    else:
        what = "was kept as the head, but is gone"
    return Contradiction(memory_id, f"step {step}", what)


def _heads_at(memory_id: str, step: int) -> set[str]:
    """Return the digest of a step, and what was the head at that step once it was anchored."""
    digest = _digest_at(memory_id, step)
    if digest is None:
        return set()
    heads = {digest.hex()}
    memory = Memory.objects.filter(pk=memory_id, anchored_step=step).first()
    if memory is not None:
        older = _digest_at(memory_id, memory.older_steps or 0)
        heads.add(chain.anchor_of(memory, older or b"", digest).hex())
    return heads


def _digest_at(memory_id: str, step: int) -> bytes | None:
    """Return the digest of a step; that of step 0 is the conversation's own."""
    if step:
        found = Step.objects.filter(memory=memory_id, n=step).values_list("digest", flat=True)
        digest = found.first()
        return bytes(digest) if digest else None
    memory = Memory.objects.filter(pk=memory_id).first()
    return chain.first_digest(memory) if memory else None


def _was_deleted(memory_id: str, step: int) -> bool:
    """Return whether a conversation with this id and at least so many steps was deleted."""
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    return any(entry.detail.get("steps", 0) >= step for entry in entries)
