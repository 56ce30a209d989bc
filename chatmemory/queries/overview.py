"""All conversations: pages of them, headline numbers, and what left memory lately."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, Left

from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import (
    InvalidValue,
)
from chatmemory.core.messages import MessageType
from chatmemory.core.window import Totals
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.rows import MemoryRow, memory_row


@dataclass(frozen=True)
class Overview:
    """A page of conversations, and cursors to the pages beside it."""

    rows: tuple[OverviewRow, ...]
    total: int
    newer: str | None
    older: str | None


@dataclass(frozen=True)
class OverviewRow:
    """A conversation with the newest thing said, and its window's load over the last steps."""

    memory: MemoryRow
    snippet: str
    loads: tuple[int, ...]


@dataclass(frozen=True)
class OverviewStats:
    """Headline numbers since a moment."""

    conversations: int
    active: int
    forgotten: int
    forgotten_in: int
    reach: int
    dangling: int
    oversized: int


@dataclass(frozen=True)
class FeedItem:
    """A message that left memory, lately and anywhere."""

    memory_id: str
    at: datetime
    step: int
    seq: int
    type: MessageType
    has_calls: bool
    text: str
    reason: Reason
    is_oversized: bool

    @property
    def moment(self) -> int:
        """`at` in microseconds since 1970, as the live feed counts."""
        return moment(self.at)


SPARK_STEPS = 40
ORDERINGS: dict[str, Any] = {
    "activity": F("updated_at"),
    "forgotten": F("said_count") - F("window_count"),
    "said": F("said_count"),
    "fill": Coalesce(F("window_load") * 1000 / F("policy_limit"), 0),
}


def overview(
    *,
    search: str = "",
    policy: str = "",
    active_since: datetime | None = None,
    flagged: bool = False,
    ordering: str = "activity",
    older_than: str = "",
    newer_than: str = "",
    size: int = 25,
) -> Overview:
    """A page of conversations, the highest of `ordering` first. Raises InvalidValue for a bad
    cursor.
    """
    rows = Memory.objects.all()
    rows = rows.containing(search) if search else rows
    rows = rows.with_policy(policy) if policy else rows
    rows = rows.filter(updated_at__gte=active_since) if active_since else rows
    rows = rows.flagged() if flagged else rows
    total = rows.count()
    rows = rows.annotate(ordered_by=ORDERINGS[ordering])
    upwards = bool(newer_than)
    if older_than or newer_than:
        value, pk = _read_cursor(older_than or newer_than, ordering)
        side = "gt" if upwards else "lt"
        beyond = Q(**{f"ordered_by__{side}": value}) | Q(ordered_by=value, **{f"pk__{side}": pk})
        rows = rows.filter(beyond)
    keys = ("ordered_by", "pk") if upwards else ("-ordered_by", "-pk")
    found = list(rows.order_by(*keys)[: size + 1])
    more, found = len(found) > size, found[:size]
    if upwards:
        found.reverse()
    return Overview(
        rows=_overview_rows(found),
        total=total,
        newer=_cursor(found[0]) if found and (more if upwards else older_than) else None,
        older=_cursor(found[-1]) if found and (more or upwards) else None,
    )


def overview_stats(since: datetime) -> OverviewStats:
    """Headline numbers: how many conversations, what was forgotten, how far memory reaches."""
    active = Memory.objects.filter(updated_at__gte=since)
    adds = _evicting_adds().filter(at__gte=since)
    adds = adds.annotate(left=F("count_before") + 1 - F("count_after"))
    left = adds.aggregate(sum=Sum("left"), memories=Count("memory_id", distinct=True))
    reaching = active.filter(window_count__gt=0).order_by("window_count")
    middle = reaching.count() // 2
    reach = reaching.values_list("window_count", flat=True)[middle : middle + 1]
    return OverviewStats(
        conversations=Memory.objects.count(),
        active=active.count(),
        forgotten=left["sum"] or 0,
        forgotten_in=left["memories"],
        reach=next(iter(reach), 0),
        dangling=Memory.objects.filter(dangling_call__isnull=False).count(),
        oversized=Memory.objects.filter(MemoryQuerySet.OVERSIZED_LATELY).count(),
    )


def feed(size: int = 12) -> list[FeedItem]:
    """What left memory last, the latest first."""
    steps = list(_evicting_adds().order_by("-at", "memory_id", "-n")[:size])
    if not steps:
        return []
    ended = Q()
    for row in steps:
        ended |= Q(memory_id=row.memory_id, left_step=row.n)
    at = {(row.memory_id, row.n): row.at for row in steps}
    stays = Stay.objects.filter(ended).exclude(reason=Reason.MOVED).select_related("message")
    items = [
        FeedItem(
            memory_id=stay.memory_id,
            at=at[stay.memory_id, stay.left_step],
            step=stay.left_step,
            seq=stay.seq,
            type=MessageType(stay.type),
            has_calls=stay.has_calls,
            text=stay.message.text[:200],
            reason=Reason(str(stay.reason)),
            is_oversized=stay.entered_step == stay.left_step,
        )
        for stay in stays[: size * 20]
        if stay.left_step is not None
    ]
    return sorted(items, key=lambda item: (item.at, item.step, item.seq), reverse=True)[:size]


def newest_eviction() -> int:
    """The moment of the last add by which something left memory, anywhere; 0 before the first."""
    at = _evicting_adds().order_by("-at").values_list("at", flat=True).first()
    return moment(at) if at else 0


def moment(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _evicting_adds() -> QuerySet[Step]:
    """Adds by which something left; the condition is that of an index."""
    return Step.objects.filter(kind=Step.Kind.ADD, count_after__lte=F("count_before"))


def _overview_rows(rows: Sequence[Memory]) -> tuple[OverviewRow, ...]:
    newest, recent = Q(), Q()
    for row in rows:
        newest |= Q(memory_id=row.pk, seq=row.last_seq)
        recent |= Q(memory_id=row.pk, n__gt=row.last_step - SPARK_STEPS)
    snippets: dict[str, str] = {}
    loads: dict[str, list[int]] = {row.pk: [] for row in rows}
    if rows:
        texts = Message.objects.filter(newest).annotate(start=Left("text", 200))
        snippets = dict(texts.values_list("memory_id", "start"))
        for step in Step.objects.filter(recent).order_by("n"):
            policy = step.policy
            after = Totals(step.count_after, step.tokens_after)
            loads[step.memory_id].append(policy.load(*after) if policy else after.tokens)
    return tuple(
        OverviewRow(memory_row(row), snippets.get(row.pk, ""), tuple(loads[row.pk])) for row in rows
    )


def _cursor(row: Any) -> str:
    value = row.ordered_by
    value = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([value, row.pk]).encode()).decode()


def _read_cursor(text: str, ordering: str) -> tuple[Any, str]:
    """Where a page begins. Raises InvalidValue for what `_cursor` never wrote for this ordering."""
    try:
        value, pk = json.loads(base64.urlsafe_b64decode(text.encode()))
        if ordering == "activity":
            return datetime.fromisoformat(value).astimezone(UTC), _text(pk)
        return _count(value), _text(pk)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidValue("this page link is broken: start again from the first page") from error


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("not an id")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or abs(value) >= 2**63:
        raise ValueError("not a number of messages")
    return value
