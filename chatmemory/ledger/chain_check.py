"""The check of the chain of digests against rows, audit entries and heads that were kept elsewhere.

See `chain`. An audit entry says nothing where its detail is not what an erasure writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chatmemory.ledger import chain
from chatmemory.ledger.contradictions import Contradicted, Contradiction, expect, naming
from chatmemory.models import AuditEntry, Memory, Message, Step


class ChainCheck:
    """The check of a chain, row by row in the order of the ledger. Its methods raise Contradicted
    for a row that is not what its digest says.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._digest = chain.first_digest(memory)
        self._labels = chain.stored(memory.first_labels)
        self._redacted: dict[int, Message] = {}  # without words, by the step of the redaction
        self._audited = _redactions(memory.pk)

    def check_message(self, row: Message) -> None:
        """Check a message, which is what was said or what its redaction left."""
        commitment = chain.commitment_of(row)
        if row.redacted_step is not None:
            left = Message(seq=row.seq, commitment=commitment)
            other = self._redacted.setdefault(row.redacted_step, left)
            expect(row, f"the message redacted at step {row.redacted_step}", other.seq, row.seq)
        elif commitment != chain.stored(row.commitment):
            raise Contradicted(row, "is not what its digest says: it was altered")

    def check_step(
        self,
        step: Step,
        commitments: Sequence[chain.Bytes],
        begun: Sequence[tuple[Any, ...]],
        ended: Sequence[tuple[int, str]],
    ) -> None:
        """Check a step with what it wrote; see `chain.digest_of`."""
        if step.kind == Step.Kind.REDACT:
            self._check_redaction(step)
        elif step.kind == Step.Kind.LABELS:
            self._labels = chain.stored(step.commitment)
        self._digest = chain.digest_of(self._digest, step, commitments, begun, ended)
        if chain.stored(step.digest) != self._digest:
            raise Contradicted(step, "is not what its digest says: it or its rows were altered")

    def check_end(self) -> None:
        """Check the head, the labels and the audit entries after the last step."""
        for n, row in self._redacted.items():
            raise Contradicted(row, f"redacted at step {n}, which is no redaction")
        memory = self._memory
        if chain.stored(memory.head) != self._digest:
            raise Contradicted(memory, "the head is not the digest of the newest step")
        if chain.commitment_of_labels(memory.labels, memory.labels_salt) != self._labels:
            raise Contradicted(memory, "the labels are not what their digest says")
        if memory.previous_head is not None:
            head = chain.stored(memory.previous_head).hex()
            if all(deletion.head != head for deletion in _deletions(memory.pk)):
                raise Contradicted(memory, "the audit entry of the deletion before is missing")
        for seq, step, _ in self._audited:
            what = f"tells of a redaction of #{seq} that there was not"
            raise Contradicted(f"an audit entry of step {step}", what)

    def _check_redaction(self, step: Step) -> None:
        row = self._redacted.pop(step.n, None)
        expect(step, "seq", step.seq, row and row.seq)
        if row and chain.stored(step.commitment) != row.commitment:
            raise Contradicted(row, "is not what its redaction left: it was altered")
        entries = self._audited.pop((step.seq, step.n, step.actor), 0)
        if not entries:
            raise Contradicted(step, "its audit entry is missing")
        if entries > 1:
            raise Contradicted(step, f"has {entries} audit entries")


def check_hidden(memory_id: str) -> None:
    """Raise Contradicted for a conversation that is hidden as if its deletion had begun."""
    hidden = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    for steps, head in hidden.values_list("last_step", "head"):
        if _Deletion(steps, chain.stored(head).hex()) not in _deletions(memory_id):
            what = "is hidden as one that is being deleted, but no audit entry tells of that"
            raise Contradicted("the conversation", what)


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Return what contradicts a head that was kept at a step (in hexadecimal), or None.

    A missing step or conversation, or another head, contradicts it, unless the conversation was
    deleted since: an audited deletion covers it. The id may be that of a new conversation, which
    has other heads.
    """
    try:
        with naming(f"step {step}"):
            found = _head_at(memory_id, step)
            if head == found or any(each.covers(step, head) for each in _deletions(memory_id)):
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


class _Deletion(NamedTuple):
    """What an audit entry tells of a deletion: how many steps there were, and the head."""

    steps: int | str | None
    head: int | str | None

    def covers(self, step: int, head: str) -> bool:
        """Return whether a head may have been that of the conversation at a step.

        The entry knows the head at the last step only. Nothing is left of earlier steps to compare
        with, so any head is accepted there; but a conversation whose heads were kept had one.
        """
        if not isinstance(self.steps, int) or not isinstance(self.head, str):
            return False
        return step < self.steps or (step, head) == self


def _deletions(memory_id: str) -> Iterator[_Deletion]:
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    for detail in entries.values_list("detail", flat=True):
        yield _Deletion(_value(detail, "steps"), _value(detail, "head"))


def _redactions(memory_id: str) -> Counter[tuple[int | str | None, int | str | None, str]]:
    """Return the message, the step and the actor of each redaction since the last deletion of the
    id, and how often it was entered.
    """
    entries = AuditEntry.objects.filter(memory_id=memory_id).order_by("pk")
    deleted = entries.filter(action=AuditEntry.Action.DELETE).values_list("pk", flat=True).last()
    redacted = entries.filter(action=AuditEntry.Action.REDACT, pk__gt=deleted or 0)
    found = redacted.values_list("detail", "actor").iterator()
    return Counter((_value(detail, "seq"), _value(detail, "step"), by) for detail, by in found)


def _value(detail: Any, name: str) -> int | str | None:
    found = detail.get(name) if isinstance(detail, dict) else None
    return found if isinstance(found, (int, str)) else None
