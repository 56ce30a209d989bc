"""Heads that were kept elsewhere; see `chain`."""

from __future__ import annotations

from chatmemory.ledger import audited, chain
from chatmemory.ledger.contradictions import Contradicted, Contradiction, naming
from chatmemory.models import Memory, Step


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Return what contradicts a head that was kept at a step (in hexadecimal), or None.

    A missing step or conversation, or another head, contradicts it, unless the conversation was
    deleted since: an audited deletion covers it, see `audited.Deletion.covers`. The id may be that
    of a new conversation, which has other heads.
    """
    try:
        with naming(f"step {step}"):
            found = _head_at(memory_id, step)
            if head == found or any(
                deletion.covers(step, head) for deletion in audited.deletions(memory_id)
            ):
                return None
    except Contradicted as unreadable:
        return Contradiction(memory_id, unreadable.row, unreadable.what)
    other, gone = "its digest is not the one that was kept", "was kept as the head, but is gone"
    return Contradiction(memory_id, f"step {step}", other if found else gone)


def _head_at(memory_id: str, step: int) -> str:
    """Return the digest of a step, in hexadecimal; that of step 0 is the conversation's own.

    Of a conversation that is hidden, as its deletion has begun, there is nothing.
    """
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        return ""
    if step == 0:
        return chain.first_digest(memory).hex()
    digests = Step.objects.filter(memory=memory, n=step).values_list("digest", flat=True)
    return chain.stored(digests.first()).hex()
