"""The check of a conversation's chain of digests against its rows; see `chain`.

Rows that are older than the chain have no digest, and nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chatmemory.ledger import chain
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step

Found = tuple[Memory | Message | Step, str]
Stays = Mapping[int, Sequence[Stay]]


def altered_messages(messages: Sequence[Message], steps: Sequence[Step]) -> Iterator[Found]:
    """Yield the messages that are neither what was said nor what their redaction left."""
    redactions = {step.seq: step for step in steps if step.kind == Step.Kind.REDACT}
    for row in messages:
        if row.redacted_step is None and row.salt is None and row.commitment is None:
            continue  # older than the chain
        step = redactions.get(row.seq)
        expected = row.commitment if step is None else step.commitment
        if expected is not None and chain.commitment_of(row) != bytes(expected):
            yield row, "is not what its digest says: it was altered"


def altered_steps(
    memory: Memory, messages: Sequence[Message], steps: Sequence[Step], begun: Stays, ended: Stays
) -> Iterator[Found]:
    """Yield the steps whose digests do not follow from each other, and a head that is not the
    newest digest. `begun` and `ended` are the stays by the step that began or ended them.
    """
    previous = chain.first_digest(memory) if memory.first_labels else None
    has_begun, last_seq = previous is not None, 0
    for step in steps:
        said, last_seq = messages[last_seq : step.last_seq], step.last_seq
        if step.digest is None and not has_begun:
            continue
        has_begun = True
        expected = chain.digest_of(
            previous,
            step,
            (row.commitment for row in said),
            begun[step.n],
            ((stay.n, str(stay.reason)) for stay in ended[step.n]),
        )
        previous = bytes(step.digest or b"")
        if previous != expected:
            yield step, "is not what its digest says: it or its rows were altered"
    if has_begun and bytes(memory.head or b"") != previous:
        yield memory, "the head is not the digest of the newest step"


def altered_labels(memory: Memory, steps: Sequence[Step]) -> Iterator[Found]:
    """Yield the conversation if its labels are not those that were committed last."""
    changes = [step for step in steps if step.kind == Step.Kind.LABELS]
    expected = changes[-1].commitment if changes else memory.first_labels
    if expected is None:
        return
    if chain.commitment_of_labels(memory.labels, memory.labels_salt) != bytes(expected):
        yield memory, "the labels are not what their digest says"


def missing_audit_entries(memory: Memory, steps: Sequence[Step]) -> Iterator[Found]:
    """Yield the erasures that the chain tells of and that have no audit entry."""
    entries = AuditEntry.objects.filter(memory_id=memory.pk)
    if memory.previous_head is not None:
        head = bytes(memory.previous_head).hex()
        deleted = entries.filter(action=AuditEntry.Action.DELETE)
        if all(entry.detail.get("head") != head for entry in deleted):
            yield memory, "the audit entry of the deletion before is missing"
    redacted = {
        (entry.detail.get("seq"), entry.detail.get("step"), entry.actor)
        for entry in entries.filter(action=AuditEntry.Action.REDACT)
    }
    for step in steps:
        is_redaction = step.kind == Step.Kind.REDACT and step.digest is not None
        if is_redaction and (step.seq, step.n, step.actor) not in redacted:
            yield step, "its audit entry is missing"
