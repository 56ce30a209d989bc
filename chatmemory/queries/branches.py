"""Branches: conversations that were saved from a step of another one, and copied its messages.

A branch is one of the conversation that had the id when it was saved, not of a later one: the
deletion of a conversation leaves the rows of its branches, which may be on other nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from chatmemory.core.exceptions import MessageNotFound
from chatmemory.core.storable import storable_id
from chatmemory.models import Memory, Message


def branches(memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of the branches of some conversations, and of their branches in turn."""
    given = list(dict.fromkeys(memory_ids))
    rows = Memory.objects.filter(id__in=given)
    found = sources = dict(rows.values_list("id", "created_at"))
    while sources:
        rows = Memory.objects.filter(branched_from__in=list(sources)).exclude(id__in=list(found))
        saved = rows.order_by("id").values_list("id", "branched_from", "created_at")
        sources = {branch: at for branch, source, at in saved if at >= sources[source]}
        found = found | sources
    return [memory_id for memory_id in found if memory_id not in given]


def source_of(branch: Memory) -> Memory | None:
    """Return the conversation that a branch was saved from, unless it is deleted."""
    rows = Memory.objects.filter(pk=branch.branched_from, created_at__lte=branch.created_at)
    return next(iter(rows), None) if branch.branched_from else None


def copies_of(row: Message, chosen: Iterable[str] | None = None) -> list[Message]:
    """Return the copies of a message in branches of its conversation: in all, or in the given ones.

    A message in a branch is a copy if it was said at the same time, or put into the window, and its
    content is the same.
    """
    if chosen is None:
        ids = branches([row.memory_id])
    else:  # asks their nodes only
        ids = [branch for branch in chosen if _is_branch(branch, row.memory_id)]
    same = Q(said_at=row.said_at) | Q(origin=Message.Origin.SYNTHETIC)
    rows = Message.objects.filter(same, memory__in=ids, text=row.text)
    return [each for each in rows.order_by("memory", "seq") if each.payload == row.payload]


def copies(memory_id: str, seq: int) -> list[tuple[str, int]]:
    """Return the copies of a message in branches, by id and seq; none of a redacted message.

    Raises MessageNotFound, UnstorableText.
    """
    row = Message.objects.filter(memory_id=storable_id(memory_id), seq=seq).first()
    if row is None:
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    found = copies_of(row) if row.redacted_step is None else []
    return [(copy.memory_id, copy.seq) for copy in found]


def _is_branch(memory_id: str, source_id: str) -> bool:
    """Return whether a conversation is a branch of another, or a branch of its branches."""
    passed: set[str] = set()  # sources that somebody altered may go round in circles
    branch = Memory.objects.filter(pk=memory_id).first()
    while branch is not None and branch.pk not in passed:
        passed.add(branch.pk)
        branch = source_of(branch)
        if branch is not None and branch.pk == source_id:
            return True
    return False
