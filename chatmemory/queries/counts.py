"""Counts of conversations: for the headlines of the overview, and for each of its filters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Count, Q, QuerySet, Sum

from chatmemory.managers import Flag, flagged
from chatmemory.models import Memory
from chatmemory.queries.feed import evicting_adds
from chatmemory.queries.filters import EVERYTHING, MemoryFilter
from chatmemory.queries.searching import countable

Name = TypeVar("Name")


@dataclass(frozen=True)
class OverviewStats:
    """The statistics of all conversations since a time.

    `forgotten` is the number of evicted messages, `forgotten_in` the number of conversations that
    they left. `reach` is the median number of messages in the memories of active conversations.
    `flagged` is the number of conversations with any flag.
    """

    conversations: int
    active: int
    forgotten: int
    forgotten_in: int
    reach: int
    flagged: int
    dangling: int
    oversized: int
    over_limit: int


def overview_stats(since: datetime) -> OverviewStats:
    """Return the statistics of all conversations since a time."""
    active = Q(updated_at__gte=since)
    counts = Memory.objects.aggregate(
        conversations=Count("pk"),
        active=Count("pk", filter=active),
        flagged=Count("pk", filter=flagged(Flag.ANY)),
        dangling=Count("pk", filter=flagged(Flag.DANGLING)),
        oversized=Count("pk", filter=flagged(Flag.OVERSIZED)),
        over_limit=Count("pk", filter=flagged(Flag.OVER_LIMIT)),
    )
    adds = evicting_adds().filter(at__gte=since)
    left = adds.aggregate(sum=Sum("evicted"), memories=Count("memory_id", distinct=True))
    return OverviewStats(
        **counts,
        forgotten=left["sum"] or 0,
        forgotten_in=left["memories"],
        reach=_median(Memory.objects.filter(active, window_count__gt=0), "window_count"),
    )


def outside(which: MemoryFilter, memory_ids: Collection[str]) -> set[str] | None:
    """Return those of these ids that a filter does not show, or None if its search finds too much
    to know it while somebody waits.
    """
    rows = countable(which)
    if rows is None:
        return None
    shown = rows.filter(which.columns(), id__in=memory_ids).values_list("id", flat=True)
    return set(memory_ids) - set(shown)


def _median(rows: QuerySet[Memory], column: str) -> int:
    """Return the median of a column, which has few different values; 0 without rows.

    They are counted, because sorted rows would all be sent to the coordinator of a cluster.
    """
    counts: dict[int, int] = dict(rows.values_list(column).annotate(Count("pk")).order_by())
    middle = sum(counts.values()) // 2
    for value, count in sorted(counts.items()):
        middle -= count
        if middle < 0:
            return value
    return 0


def count(which: MemoryFilter = EVERYTHING) -> int:
    """Return the number of conversations that match a filter."""
    return which.rows().count()


def count_each(filters: Mapping[Name, MemoryFilter]) -> dict[Name, int | None]:
    """Return the number of conversations that match each filter, by one query.

    The filters differ in their policy, flag and times of activity only. With a search that finds
    very many messages, numbers are None: too many to count while somebody waits.
    """
    if not filters:
        return {}
    base = countable(next(iter(filters.values())))
    if base is None:
        return dict.fromkeys(filters)
    conditions = [which.columns() for which in filters.values()]
    counts = base.aggregate(
        **{f"n{i}": Count("pk", filter=each or None) for i, each in enumerate(conditions)}
    )
    return {name: counts[f"n{i}"] for i, name in enumerate(filters)}
