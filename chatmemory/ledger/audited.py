"""What the audit entries of an id tell of its redactions and deletions.

An entry says nothing where its detail is not what an erasure writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from chatmemory.ledger.chain import stored
from chatmemory.ledger.contradictions import Contradicted
from chatmemory.ledger.encoding import Bytes
from chatmemory.models import AuditEntry, Memory


class Redaction(NamedTuple):
    """A redaction: of which message, by which step and by whom."""

    seq: int | str | None
    step: int | str | None
    actor: str


class Deletion(NamedTuple):
    """A deletion: how many steps the conversation had, and its head."""

    steps: int | str | None
    head: int | str | None

    def is_of(self, steps: int, head: Bytes | None) -> bool:
        """Return whether this deleted a conversation with so many steps and this head."""
        return (self.steps, self.head) == (steps, stored(head).hex() if head else None)

    def covers(self, step: int, head: str) -> bool:
        """Return whether a head may have been that of the conversation at a step.

        The entry knows the head at the last step only. Nothing is left of earlier steps to compare
        with, so any head is accepted there; but a conversation whose heads were kept had one.
        """
        if not isinstance(self.steps, int) or not isinstance(self.head, str):
            return False
        return step < self.steps or (step == self.steps and head == self.head)


def redactions(memory_id: str) -> Counter[Redaction]:
    """Return the redactions since the last deletion of the id, and how often each was entered."""
    entries = AuditEntry.objects.filter(memory_id=memory_id).order_by("pk")
    deleted = entries.filter(action=AuditEntry.Action.DELETE).values_list("pk", flat=True).last()
    redacted = entries.filter(action=AuditEntry.Action.REDACT, pk__gt=deleted or 0)
    found = redacted.values_list("detail", "actor").iterator()
    return Counter(
        Redaction(_value(detail, "seq"), _value(detail, "step"), actor) for detail, actor in found
    )


def deletions(memory_id: str) -> Iterator[Deletion]:
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    for detail in entries.values_list("detail", flat=True):
        yield Deletion(*(_value(detail, name) for name in Deletion._fields))


def is_deletion_audited(memory_id: str, steps: int, head: Bytes | None) -> bool:
    """Return whether an entry tells of the deletion of a conversation as it is."""
    return any(each.is_of(steps, head) for each in deletions(memory_id))


def check_hidden(memory_id: str) -> None:
    """Raise Contradicted for a conversation that is hidden as if its deletion had begun."""
    hidden = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    for steps, head in hidden.values_list("last_step", "head"):
        if not is_deletion_audited(memory_id, steps, head):
            what = "is hidden as one that is being deleted, but no audit entry tells of that"
            raise Contradicted("the conversation", what)


def _value(detail: Any, name: str) -> int | str | None:
    found = detail.get(name) if isinstance(detail, dict) else None
    return found if isinstance(found, (int, str)) else None
