"""Reads the deletions of conversations from their audit entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chatmemory.contradictions import Contradicted
from chatmemory.ledger.lookup import stored
from chatmemory.models import AuditEntry, Memory


class Deletion(NamedTuple):
    """What an audit entry says about a deleted conversation.

    - `steps`: the number of steps of the conversation.
    - `head`: the hexadecimal digest of its last step.

    A value is None if the entry lacks it. In an altered entry, `steps` can be a string, and `head`
    a number.
    """

    steps: int | str | None
    head: int | str | None

    def covers(self, step: int, head: str) -> bool:
        """Return whether the deleted conversation may have had the digest `head` after this step.

        - A step before the last: True, because the audit entry has no digest to compare.
        - The last step: whether `head` equals the digest in the audit entry.
        - A later step: False.

        Also False if the audit entry lacks the number of steps or the digest.
        """
        if not isinstance(self.steps, int) or not isinstance(self.head, str):
            return False
        return step < self.steps or (step, head) == self


def deletions(memory_id: str) -> Iterator[Deletion]:
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    for detail in entries.values_list("detail", flat=True):
        yield Deletion(value_of(detail, "steps"), value_of(detail, "head"))


def check_hidden(memory_id: str) -> None:
    """Raise Contradicted if a conversation is marked as being deleted, and no audit entry records
    the deletion.
    """
    hidden = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    for steps, head in hidden.values_list("last_step", "head"):
        if Deletion(steps, stored(head).hex()) not in deletions(memory_id):
            what = "is hidden as being deleted, but no audit entry records the deletion"
            raise Contradicted("the conversation", what)


def value_of(detail: object, name: str) -> int | str | None:
    found = detail.get(name) if isinstance(detail, dict) else None
    return found if isinstance(found, (int, str)) else None
