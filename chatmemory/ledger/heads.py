"""Heads that were kept elsewhere; see `chain`."""

from __future__ import annotations

from chatmemory.ledger.contradictions import Contradiction
from chatmemory.models import AuditEntry, Step


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Return what contradicts a head that was kept at a step (in hexadecimal), or None.

    A missing step or conversation contradicts it, unless its deletion was audited since.
    """
    digest = Step.objects.filter(memory=memory_id, n=step).values_list("digest", flat=True).first()
    if digest is not None and bytes(digest).hex() == head:
        return None
    if digest is not None:
        what = "its digest is not the one that was kept"
    elif _was_deleted(memory_id, step):
        return None
    else:
        what = "was kept as the head, but is gone"
    return Contradiction(memory_id, f"step {step}", what)


def _was_deleted(memory_id: str, step: int) -> bool:
    """Return whether a conversation with this id and at least so many steps was deleted."""
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    return any(entry.detail.get("steps", 0) >= step for entry in entries)
