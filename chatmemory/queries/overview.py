"""Lists of conversations, statistics of all of them, and the latest evictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, Left

from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import load_or_tokens
from chatmemory.core.window import Totals
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.cursors import CursorPage, SortKey, page_by_cursor
from chatmemory.queries.rows import MemoryRow, memory_row


@dataclass(frozen=True)
class MemoryFilter:
    """A filter of conversations. A conversation must match every field that is not empty.

    `search` searches ids and messages, `policy` is a policy kind or CLIENT, `label` is `name` or
    `name:value`, `id_prefix` is compared exactly, `active_since` is inclusive and `active_before`
    exclusive, and `flagged` selects conversations that need attention.
    """

    search: str = ""
    policy: str = ""
    label: str = ""
    id_prefix: str = ""
    active_since: datetime | None = None
    active_before: datetime | None = None
    flagged: bool = False

    def rows(self) -> MemoryQuerySet:
        rows = Memory.objects.beginning_with(self.id_prefix)
        rows = rows.containing(self.search) if self.search else rows
        rows = rows.with_policy(self.policy) if self.policy else rows
        rows = rows.with_label(self.label) if self.label else rows
        rows = rows.filter(updated_at__gte=self.active_since) if self.active_since else rows
        rows = rows.filter(updated_at__lt=self.active_before) if self.active_before else rows
        return rows.flagged() if self.flagged else rows


EVERYTHING = MemoryFilter()


@dataclass(frozen=True)
class Overview:
    """A page of conversations with the cursors of the pages before and after it."""

    rows: tuple[OverviewRow, ...]
    total: int
    newer: str | None
    older: str | None


@dataclass(frozen=True)
class OverviewRow:
    """A conversation with its newest message and the load of its window in the last steps."""

    memory: MemoryRow
    snippet: str
    loads: tuple[int, ...]


@dataclass(frozen=True)
class OverviewStats:
    """The statistics of all conversations since a time.

    `forgotten` is the number of evicted messages, `forgotten_in` the number of conversations that
    they left. `reach` is the median number of messages in the memories of active conversations.
    """

    conversations: int
    active: int
    forgotten: int
    forgotten_in: int
    reach: int
    dangling: int
    oversized: int


@dataclass(frozen=True)
class FeedItem:
    """A message that recently left the memory of any conversation."""

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
ORDERINGS: dict[str, SortKey] = {
    "activity": SortKey(F("updated_at"), datetime),
    "created": SortKey(F("created_at"), datetime),
    "id": SortKey(F("id"), str),
    "said": SortKey(F("said_count")),
    "tokens": SortKey(F("history_tokens")),
    "forgotten": SortKey(F("said_count") - F("window_count")),
    "fill": SortKey(Coalesce(F("window_load") * 1000 / F("policy_limit"), 0)),
}


def memory_page(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 50,
) -> CursorPage[MemoryRow]:
    """Return a page of conversations. `ordering` is one of ORDERINGS; a minus means descending.

    Raises InvalidValue for an unknown ordering and for an invalid cursor.
    """
    page = _page(which, ordering, cursor, size)
    return CursorPage(tuple(map(memory_row, page.rows)), page.previous, page.next)


def overview(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 25,
) -> Overview:
    """Return a page of conversations with the details of the overview page.

    Raises the exceptions of `memory_page`.
    """
    page = _page(which, ordering, cursor, size)
    return Overview(
        rows=_overview_rows(page.rows),
        total=which.rows().count(),
        newer=page.previous,
        older=page.next,
    )


def _page(which: MemoryFilter, ordering: str, cursor: str, size: int) -> CursorPage[Memory]:
    key = ORDERINGS.get(ordering.removeprefix("-"))
    if key is None:
        raise InvalidValue(f"ordering must be one of {', '.join(ORDERINGS)}, or -{ordering}")
    descending = ordering.startswith("-")
    return page_by_cursor(which.rows(), key, descending=descending, cursor=cursor, size=size)


def overview_stats(since: datetime) -> OverviewStats:
    """Return the statistics of all conversations since a time."""
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
    """Return the messages that left memory last, the latest first."""
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
    """Return the `moment` of the latest add that evicted a message; 0 if there is none."""
    at = _evicting_adds().order_by("-at").values_list("at", flat=True).first()
    return moment(at) if at else 0


def moment(at: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _evicting_adds() -> QuerySet[Step]:
    """Return the adds that evicted a message. The condition is that of the index step_evicting."""
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
            after = Totals(step.count_after, step.tokens_after)
            loads[step.memory_id].append(load_or_tokens(step.policy, after))
    return tuple(
        OverviewRow(memory_row(row), snippets.get(row.pk, ""), tuple(loads[row.pk])) for row in rows
    )
