"""Branches: conversations that were saved from a step of another one, and copied its messages."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q

from chatmemory.models import Memory, Message


def branches_of(memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of the branches of some conversations, and of their branches in turn."""
    found = dict.fromkeys(memory_ids)
    sources, given = list(found), len(found)
    while sources:
        rows = Memory.objects.filter(branched_from__in=sources).exclude(id__in=list(found))
        sources = list(rows.order_by("pk").values_list("pk", flat=True))
        found |= dict.fromkeys(sources)
    return list(found)[given:]


def copies_of(row: Message) -> list[Message]:
    """Return the copies of a message in branches of its conversation.

    A message in a branch is a copy if it was said at the same time, or put into the window, and its
    content is the same.
    """
    same = Q(said_at=row.said_at) | Q(origin=Message.Origin.SYNTHETIC)
    rows = Message.objects.filter(same, memory__in=branches_of([row.memory_id]), text=row.text)
    return [each for each in rows.order_by("memory", "seq") if each.payload == row.payload]
