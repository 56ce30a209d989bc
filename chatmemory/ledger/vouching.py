"""The check of a conversation's chain of digests against its rows; see `chain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chatmemory.ledger import audited, chain
from chatmemory.ledger.contradictions import Contradicted, expect
from chatmemory.ledger.encoding import Bytes, Encoded
from chatmemory.ledger.pinning import PINNING
from chatmemory.models import Memory, Message, Step


class _Redacted(NamedTuple):
    """A redacted message: its number, and the commitment of what is left of it."""

    seq: int
    commitment: bytes


class Vouching:
    """The check of a chain, row by row in the order of the ledger. Its methods raise Contradicted
    for a row that is not what its digest says.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._previous = chain.first_digest(memory)
        self._labels = chain.stored(memory.first_labels)
        self._redacted: dict[int, _Redacted] = {}
        self._audited = audited.redactions(memory.pk)

    def check_message(self, row: Message) -> None:
        """Check a message, which is what was said or what its redaction left."""
        if row.redacted_step is not None:
            other = self._redacted.setdefault(
                row.redacted_step, _Redacted(row.seq, chain.commitment_of(row))
            )
            expect(row, f"the message redacted at step {row.redacted_step}", other.seq, row.seq)
        elif chain.commitment_of(row) != chain.stored(row.commitment):
            raise Contradicted(row, "is not what its digest says: it was altered")

    def check_step(
        self,
        step: Step,
        said: Sequence[Bytes | None],
        begun: Sequence[Encoded],
        ended: Sequence[tuple[int, str]],
    ) -> None:
        """Check a step with the commitments of its messages and the stays that it began and ended.

        See `chain.digest_of`.
        """
        self._check_redaction(step)
        if step.kind == Step.Kind.LABELS:
            self._labels = chain.stored(step.commitment)
        self._previous = chain.digest_of(self._previous, step, said, begun, ended)
        if chain.stored(step.digest) != self._previous:
            raise Contradicted(step, "is not what its digest says: it or its rows were altered")

    def check_end(self) -> None:
        """Check the head, the labels and the audit entries after the last step."""
        for n, redacted in self._redacted.items():
            row = Message(seq=redacted.seq)
            raise Contradicted(row, f"redacted at step {n}, which is no redaction")
        memory = self._memory
        if chain.stored(memory.head) != self._previous:
            raise Contradicted(memory, "the head is not the digest of the newest step")
        labels = chain.commitment_of_labels(memory.labels, memory.labels_salt)
        if labels != self._labels:
            raise Contradicted(memory, "the labels are not what their digest says")
        if memory.previous_head is not None:
            head = bytes(memory.previous_head).hex()
            if all(deletion.head != head for deletion in audited.deletions(memory.pk)):
                raise Contradicted(memory, "the audit entry of the deletion before is missing")
        for redaction in self._audited:
            what = f"tells of a redaction of #{redaction.seq} that there was not"
            raise Contradicted(f"an audit entry of step {redaction.step}", what)

    def _check_redaction(self, step: Step) -> None:
        if step.kind != Step.Kind.REDACT:
            if step.kind not in PINNING:
                expect(step, "seq", step.seq, None)
            return
        redacted = self._redacted.pop(step.n, None)
        expect(step, "seq", step.seq, redacted and redacted.seq)
        if redacted and chain.stored(step.commitment) != redacted.commitment:
            row = Message(seq=redacted.seq)
            raise Contradicted(row, "is not what its redaction left: it was altered")
        entered = self._audited.pop(audited.Redaction(step.seq, step.n, step.actor), 0)
        if not entered:
            raise Contradicted(step, "its audit entry is missing")
        if entered > 1:
            raise Contradicted(step, f"has {entered} audit entries")
