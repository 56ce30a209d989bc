"""Checks chains of digests against rows, audit entries, and heads that were kept elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.db.models import Max

from chatmemory.contradictions import Contradicted, Contradiction, LedgerCheck, expect, naming
from chatmemory.ledger.deletions import deletions, value_of
from chatmemory.ledger.lookup import Bytes, stored
from chatmemory.ledger.windows import read_message
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from chatmemory.recall.index import is_index
from inspector.rooms.integrity.chain import (
    commitment_of_labels,
    digest_as_sealed,
    first_digest,
    is_commitment,
)


class ChainCheck(LedgerCheck):
    """Checks the chain of a conversation, row by row in the order of the ledger. A method raises
    Contradicted if a row does not fit its digest.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._digest = first_digest(memory)
        self._labels = stored(memory.first_labels)
        self._redacted: dict[int, Message] = {}  # by the step of redaction
        self._audited = _redactions(memory.pk)
        # What the next step began
        self._commitments: list[Bytes] = []
        self._begun: list[Stay] = []

    def message(self, row: Message) -> None:
        """Check a message against its commitment. A redacted message is checked later, with the
        step that redacted it. A message without a commitment is not checked.
        """
        self._commitments.append(row.commitment)
        if not stored(row.commitment):  # its step has no digest either
            return
        if row.redacted_step is not None:
            other = self._redacted.setdefault(row.redacted_step, row)
            expect(row, f"the message redacted at step {row.redacted_step}", other.seq, row.seq)
        elif not is_commitment(stored(row.commitment), row):
            raise Contradicted(row, "differs from its digest: the message was altered")

    def stay(self, row: Stay) -> None:
        self._begun.append(row)

    def step(self, step: Step, ended: Sequence[tuple[int, str]]) -> None:
        """Check the digest of a step, which covers all rows that the step wrote; see
        `digest_of`.
        """
        if not stored(step.digest):
            raise Contradicted(
                _without_digest(step),
                "has no digest, because the room integrity was not installed when the step was "
                "recorded",
            )
        if step.kind == Step.Kind.REDACT:
            self._check_redaction(step)
        elif step.kind == Step.Kind.LABELS:
            self._labels = stored(step.commitment)
        wrote = self._commitments, self._begun, ended
        self._commitments, self._begun = [], []
        found = stored(step.digest)
        self._digest = digest_as_sealed(found, self._digest, step, *wrote)
        if found != self._digest:
            raise Contradicted(
                step,
                "differs from its digest: the step, or a message or stay that it wrote, was "
                "altered",
            )

    def end(self) -> None:
        """Check the head, the labels and the audit entries. Called after the last step."""
        for n, row in self._redacted.items():
            raise Contradicted(
                row,
                f"says that step {n} redacted it, but step {n} is not a redaction of this message",
            )
        memory = self.memory
        if not stored(memory.head) and not stored(memory.first_labels):
            raise Contradicted(
                "the conversation",
                "has no digest, because the room integrity was not installed when the "
                "conversation was created",
            )
        if stored(memory.head) != self._digest:
            raise Contradicted(memory, "the head is not the digest of the newest step")
        # Labels of a conversation that was created without the room have no digest
        labels = commitment_of_labels(memory.labels, memory.labels_salt)
        if self._labels and labels != self._labels:
            raise Contradicted(memory, "the labels differ from their digest")
        if memory.previous_head is not None:
            head = stored(memory.previous_head).hex()
            if all(deletion.head != head for deletion in deletions(memory.pk)):
                raise Contradicted(
                    memory,
                    "the audit entry is missing for the deletion of the earlier conversation with "
                    "this id",
                )
        for seq, step, _ in self._audited:
            what = f"names a redaction of message #{seq}, but no step redacted the message"
            raise Contradicted(f"an audit entry of step {step}", what)

    def _redacted_later(self, step: int) -> set[int]:
        """Return the seqs of indexes that were redacted after `step`. Only an index can be redacted
        twice.
        """
        return {
            row.seq for n, row in self._redacted.items() if n > step and is_index(read_message(row))
        }

    def _check_redaction(self, step: Step) -> None:
        row = self._redacted.pop(step.n, None)
        if row is None and step.seq in self._redacted_later(step.n):
            row = None  # an index of which a later redaction blanked more, which is checked there
        else:
            expect(step, "seq", step.seq, row and row.seq)
        if row and not is_commitment(stored(step.commitment), row):
            raise Contradicted(
                row, "differs from the digest of its redacted form: the message was altered"
            )
        entries = self._audited.pop((step.seq, step.n, step.actor), 0)
        if not entries:
            raise Contradicted(step, "the audit entry of this redaction is missing")
        if entries > 1:
            raise Contradicted(step, f"is a redaction with {entries} audit entries instead of 1")


def _without_digest(first: Step) -> str:
    """Return the names of steps without digests, given the first of them."""
    rows = Step.objects.filter(memory=first.memory_id, digest=b"")
    last = rows.aggregate(last=Max("n"))["last"] or first.n
    return f"step {first.n}" if last == first.n else f"a step from {first.n} to {last}"


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Check whether a step still has a digest that somebody kept outside the database. `head` is
    this digest in hexadecimal. Step 0 stands for the digest before step 1.

    Return None if the step has this digest, or if an audited deletion of the conversation explains
    the difference. Otherwise, return a contradiction: the step is gone, is unreadable, or has
    another digest.
    """
    try:
        with naming(f"step {step}"):
            found = _head_at(memory_id, step)
            if head == found or any(each.covers(step, head) for each in deletions(memory_id)):
                return None
    except Contradicted as unreadable:
        return Contradiction(memory_id, unreadable.row, unreadable.what)
    other = "its digest differs from the digest of --heads"
    missing = "--heads has its digest, but the step is gone"
    return Contradiction(memory_id, f"step {step}", other if found else missing)


def _head_at(memory_id: str, step: int) -> str:
    """Return the digest of a step, in hexadecimal. Step 0 stands for the digest before step 1.

    Return "" if the step or the conversation does not exist, or if a deletion has begun.
    """
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        return ""
    if step == 0:
        return first_digest(memory).hex()
    digests = Step.objects.filter(memory=memory, n=step).values_list("digest", flat=True)
    return stored(digests.first()).hex()


def _redactions(memory_id: str) -> Counter[tuple[int | str | None, int | str | None, str]]:
    """Count the audited redactions since the last deletion of this ID, by message, step and
    actor.
    """
    audited = AuditEntry.Action.DELETE, AuditEntry.Action.REDACT
    entries = AuditEntry.objects.filter(memory_id=memory_id, action__in=audited).order_by("pk")
    found: Counter[tuple[int | str | None, int | str | None, str]] = Counter()
    for action, detail, actor in entries.values_list("action", "detail", "actor").iterator():
        if action == AuditEntry.Action.DELETE:
            found.clear()
        else:
            found[value_of(detail, "seq"), value_of(detail, "step"), actor] += 1
    return found
