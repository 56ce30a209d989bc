"""Finds the copies of a message in branches of its conversation."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from chatmemory.ledger.branches import branches_of, source_of
from chatmemory.models import Memory, Message
from chatmemory.reading.history import message_row


def copies_of(row: Message, chosen: Iterable[str] | None = None) -> list[Message]:
    """Return the copies of a message in the branches of its conversation. With `chosen`, return
    only copies in these branches.

    A copy has the same content and the same time as the message. For a message that is not in
    history, such as a summary, the time is not compared.
    """
    if chosen is None:
        ids = branches_of([row.memory_id])
    else:  # asks only their nodes
        ids = [branch for branch in chosen if _is_branch(branch, row.memory_id)]
    same = Q(said_at=row.said_at) | Q(origin=Message.Origin.SYNTHETIC)
    rows = Message.objects.filter(same, memory__in=ids, text=row.text)
    return [each for each in rows.order_by("memory", "seq") if each.payload == row.payload]


def copies(memory_id: str, seq: int) -> list[tuple[str, int]]:
    """Return the copies of a message in branches, as pairs of conversation ID and seq. A redacted
    message has no copies.

    Raises MessageNotFound, UnstorableText.
    """
    row = message_row(memory_id, seq)
    found = copies_of(row) if row.redacted_step is None else []
    return [(copy.memory_id, copy.seq) for copy in found]


def _is_branch(memory_id: str, source_id: str) -> bool:
    """Return whether a conversation is a branch of another conversation, or a branch of such a
    branch.
    """
    passed: set[str] = set()  # sources that somebody altered may form a circle
    branch = Memory.objects.filter(pk=memory_id).first()
    while branch is not None and branch.pk not in passed:
        passed.add(branch.pk)
        branch = source_of(branch)
        if branch is not None and branch.pk == source_id:
            return True
    return False
