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
            found = _heads_at(memory_id, step)
            if head in found or any(
                deletion.covers(step, head) for deletion in audited.deletions(memory_id)
            ):
                return None
    except Contradicted as unreadable:
        return Contradiction(memory_id, unreadable.row, unreadable.what)
    other, gone = "its digest is not the one that was kept", "was kept as the head, but is gone"
    return Contradiction(memory_id, f"step {step}", other if found else gone)


def _heads_at(memory_id: str, step: int) -> set[str]:
    """Return the digest of a step, and what was the head at that step once it was anchored.

    Of a conversation that is hidden, as its deletion has begun, there is nothing.
    """
    memory = Memory.objects.filter(pk=memory_id).first()
    digest = _digest_at(memory, step) if memory else b""
    if memory is None or not digest:
        return set()
    heads = {digest.hex()}
    if memory.anchored_step == step:
        older = _digest_at(memory, memory.older_steps or 0)
        heads.add(chain.anchor_of(memory, older, digest).hex())
    return heads


def _digest_at(memory: Memory, step: int) -> bytes:
    """Return the digest of a step; that of step 0 is the conversation's own."""
    if step == 0:
        return chain.first_digest(memory)
    digests = Step.objects.filter(memory=memory, n=step).values_list("digest", flat=True)
    return chain.stored(digests.first())
