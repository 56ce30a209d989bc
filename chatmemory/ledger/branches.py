"""Finds branches: conversations that began as a copy of another conversation, up to a step.

If a conversation is deleted, its branches stay. They do not become branches of a later conversation
with the same id.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory.models import Memory


def branches_of(memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of the branches of these conversations, including branches of branches."""
    ids = list(dict.fromkeys(memory_ids))
    rows = Memory.objects.filter(id__in=ids)
    found = sources = dict(rows.values_list("id", "created_at"))
    while sources:
        rows = Memory.objects.filter(branched_from__in=list(sources)).exclude(id__in=list(found))
        saved = rows.order_by("id").values_list("id", "branched_from", "created_at")
        sources = {branch: at for branch, source, at in saved if at >= sources[source]}
        found = found | sources
    return [memory_id for memory_id in found if memory_id not in ids]


def source_of(branch: Memory) -> Memory | None:
    """Return the conversation from which `branch` was copied. None if that conversation is deleted,
    or if `branch` is no branch.
    """
    rows = Memory.objects.filter(pk=branch.branched_from, created_at__lte=branch.created_at)
    return next(iter(rows), None) if branch.branched_from else None
