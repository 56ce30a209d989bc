"""The check of a conversation's chain of digests against its rows; see `chain`.

Rows that are older than the chain have no digest until they are anchored (see `anchoring`), and
nothing is said of them.
"""

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
        is_anchored = memory.older_steps is not None
        self._has_begun = is_anchored or memory.first_labels is not None
        self._previous: bytes | None = None
        self._older = b""
        if self._has_begun:
            self._continue_after(0, chain.first_digest(memory))
        self._labels = memory.first_labels
        self._redacted: dict[int, _Redacted] = {}
        self._audited = audited.redactions(memory.pk)

    def check_message(self, row: Message) -> None:
        """Check a message, which is what was said or what its redaction left."""
        if row.redacted_step is not None:
            other = self._redacted.setdefault(
                row.redacted_step, _Redacted(row.seq, chain.commitment_of(row))
            )
            expect(row, f"the message redacted at step {row.redacted_step}", other.seq, row.seq)
        elif row.commitment is not None and chain.commitment_of(row) != bytes(row.commitment):
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
            self._labels = step.commitment
        if step.digest is None and (not self._has_begun or self._is_yet_to_be_anchored(step)):
            self._previous = None
            return
        self._has_begun = True
        if bytes(step.digest or b"") != chain.digest_of(self._previous, step, said, begun, ended):
            raise Contradicted(step, "is not what its digest says: it or its rows were altered")
        self._continue_after(step.n, bytes(step.digest or b""))

    def check_end(self) -> None:
        """Check the head, the labels and the audit entries after the last step."""
        for n, redacted in self._redacted.items():
            row = Message(seq=redacted.seq)
            raise Contradicted(row, f"redacted at step {n}, which is no redaction")
        memory = self._memory
        if bytes(memory.head or b"") != (self._previous or b""):
            raise Contradicted(memory, "the head is not the digest of the newest step")
        if self._labels is not None:
            found = chain.commitment_of_labels(memory.labels, memory.labels_salt)
            if found != bytes(self._labels):
                raise Contradicted(memory, "the labels are not what their digest says")
        if memory.previous_head is not None:
            head = bytes(memory.previous_head).hex()
            if all(deletion.head != head for deletion in audited.deletions(memory.pk)):
                raise Contradicted(memory, "the audit entry of the deletion before is missing")
        for redaction in self._audited:
            what = f"tells of a redaction of #{redaction.seq} that there was not"
            raise Contradicted(f"an audit entry of step {redaction.step}", what)

    def _is_yet_to_be_anchored(self, step: Step) -> bool:
        older = self._memory.older_steps
        return older is not None and step.n <= older and self._memory.anchored_at is None

    def _continue_after(self, n: int, digest: bytes) -> None:
        """Continue the chain behind a step. The first step of the chain knows no digest of older
        ones; the anchor connects the two.
        """
        self._previous = digest
        if n == self._memory.older_steps:
            self._older, self._previous = digest, None
        if n == self._memory.anchored_step:
            self._previous = chain.anchor_of(self._memory, self._older, digest)

    def _check_redaction(self, step: Step) -> None:
        if step.kind != Step.Kind.REDACT:
            if step.kind not in PINNING:
                expect(step, "seq", step.seq, None)
            return
        redacted = self._redacted.pop(step.n, None)
        expect(step, "seq", step.seq, redacted and redacted.seq)
        if redacted and step.commitment and bytes(step.commitment) != redacted.commitment:
            row = Message(seq=redacted.seq)
            raise Contradicted(row, "is not what its redaction left: it was altered")
        entered = self._audited.pop(audited.Redaction(step.seq, step.n, step.actor), 0)
        if not entered and step.digest is not None:
            raise Contradicted(step, "its audit entry is missing")
        if entered > 1:
            raise Contradicted(step, f"has {entered} audit entries")
