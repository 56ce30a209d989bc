"""Reads lists of conversations with the details that the overview page shows, and counts
conversations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import TypeVar

from django.db.models import (
    Aggregate,
    BooleanField,
    Count,
    ExpressionWrapper,
    F,
    Max,
    Min,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce, Left
from django.utils import timezone

from chatmemory.exceptions import InvalidValue
from chatmemory.flag import Flag, Shown
from chatmemory.flags import ANY, flags
from chatmemory.models import Memory, Message, Stay
from chatmemory.reading.cursors import CursorPage, SortKey, page_by_cursor
from chatmemory.reading.feed import evicting_adds, microseconds
from chatmemory.reading.finding import (
    EVERYTHING,
    BestMatch,
    MemoryFilter,
    any_of,
    best_matches,
    countable,
    narrow_to_search,
)
from chatmemory.reading.rows import MemoryRow, memory_row
from chatmemory.reading.windows import (
    VIEW_COLUMNS,
    MessageView,
    WindowView,
    view_from,
    view_of,
    with_tool_messages,
)
from chatmemory.records import AuditEntry
from chatmemory.rooms import keepers, rooms

Name = TypeVar("Name")


RATED = 20  # conversations examined within a minute, from which a rate is known
WORDS_AMONG = 20  # the last messages, read if the very last one is synthetic


@dataclass(frozen=True)
class OverviewRow:
    """A conversation in a list.

    - `snippet`: the beginning of the newest message in history; "" if there is none.
    - `mention`: the message that matches the search best; None without a search or a match.
    - `window`: the window, if it is over its limit; else None.
    - `flags`: the conversation's flags that are shown in rows (`Shown.IN_ROWS`).
    """

    memory: MemoryRow
    snippet: str
    mention: BestMatch | None = None
    window: WindowView | None = None
    flags: tuple[Flag, ...] = ()


BY_MATCH = "match"
OWN_ORDERINGS: dict[str, SortKey] = {
    BY_MATCH: SortKey(F("updated_at"), datetime),  # of a filter, see `_page`
    "activity": SortKey(F("updated_at"), datetime),
    "created": SortKey(F("created_at"), datetime),
    "id": SortKey(F("id"), str),
    "said": SortKey(F("said_count")),
    "tokens": SortKey(F("history_tokens")),
    "forgotten": SortKey(F("last_seq") - F("window_count")),
    "fill": SortKey(Coalesce(F("window_load") * 1000 / F("policy_limit"), 0)),
}


def orderings() -> dict[str, SortKey]:
    """Return the sort keys for lists of conversations, by name, such as `activity`.

    A room adds a key for each of its sortable columns. A cause can add a key, such as the time of
    the newest incident.
    """
    more = {flag.name: flag.cases.newest_at for flag in flags() if flag.cases.newest_at}
    more |= {each.name: each.sort_by for room in rooms() for each in room.columns if each.sort_by}
    keys = {name: SortKey(Coalesce(F(column), 0)) for name, column in more.items()}
    return OWN_ORDERINGS | keys


def memory_page(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 50,
) -> CursorPage[MemoryRow]:
    """Return a page of conversations. `ordering` is a key of `orderings()`; a minus before it means
    descending.

    Raises InvalidValue for an unknown ordering and for an invalid cursor.
    """
    page = _page(which, ordering, cursor, size)
    return CursorPage(tuple(map(memory_row, page.rows)), page.previous, page.next)


def all_memories(which: MemoryFilter) -> list[MemoryRow]:
    """Return all conversations that match a filter, sorted by id. There can be very many: call
    `count` first.
    """
    return [memory_row(row) for row in which.rows().order_by("id")]


def overview_page(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 25,
) -> CursorPage[OverviewRow]:
    """Return a page of conversations with the details of the overview page. Parameters and
    exceptions are those of `memory_page`.
    """
    page = _page(which, ordering, cursor, size)
    return CursorPage(_overview_rows(page.rows, which.search), page.previous, page.next)


def overview_rows(memory_ids: Sequence[str], search: str = "") -> tuple[OverviewRow, ...]:
    """Return the overview rows of the conversations with these ids, in this order. Unknown ids are
    left out.

    `search` has the words for `OverviewRow.mention`. Without words, each mention is None.
    """
    found = Memory.objects.in_bulk(memory_ids)
    known = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return _overview_rows(known, search)


def _page(which: MemoryFilter, ordering: str, cursor: str, size: int) -> CursorPage[Memory]:
    known = orderings()
    key = known.get(ordering.removeprefix("-"))
    if key is None:
        names = ", ".join(known)
        raise InvalidValue(
            f"ordering must be one of {names}, with a minus in front for the reverse order"
        )
    if ordering.endswith(BY_MATCH):
        key = SortKey(which.by_match(), datetime)
    descending = ordering.startswith("-")
    return page_by_cursor(
        which.searched(),
        key,
        descending=descending,
        cursor=cursor,
        size=size,
        narrowed=partial(narrow_to_search, which) if which.search else None,
    )


def _overview_rows(rows: Sequence[Memory], search: str) -> tuple[OverviewRow, ...]:
    if not rows:
        return ()
    snippets = _last_words(rows)
    memories = [memory_row(row) for row in rows]
    over = windows_over_limit(memories)
    hidden = {memory_id: window.hidden for memory_id, window in over.items()}
    ids = [row.pk for row in rows]
    found = best_matches(search, ids, hidden) if search else {}
    shown = _flags_of(ids)
    return tuple(
        OverviewRow(
            memory=memory,
            snippet=snippets.get(memory.id, ""),
            mention=found.get(memory.id),
            window=over.get(memory.id),
            flags=shown.get(memory.id, ()),
        )
        for memory in memories
    )


def _last_words(rows: Sequence[Memory]) -> dict[str, str]:
    """Return the beginning of each conversation's last message, by id. Messages that are not in
    history, such as summaries, are left out.
    """
    messages = Message.objects.filter(origin=Message.Origin.SAID).annotate(start=Left("text", 200))
    newest = any_of({row.pk: [row.last_seq] for row in rows})
    found: dict[str, str] = dict(messages.filter(newest).values_list("memory_id", "start"))
    before = Q()
    for row in rows:
        if row.pk not in found and row.said_count:
            before |= Q(memory_id=row.pk, seq__gt=row.last_seq - WORDS_AMONG)
    if before:
        found |= dict(messages.filter(before).order_by("seq").values_list("memory_id", "start"))
    return found


def _flags_of(ids: Sequence[str]) -> dict[str, tuple[Flag, ...]]:
    """Return, by conversation id, the flags that rows of the overview show."""
    shown = [flag for flag in flags() if Shown.IN_ROWS in flag.shown]
    if not shown:
        return {}
    conditions = [ExpressionWrapper(each.where, BooleanField()) for each in shown]
    rows = Memory.objects.filter(id__in=ids).values_list("id", *conditions)
    return {
        memory_id: tuple(flag for flag, is_set in zip(shown, found, strict=True) if is_set)
        for memory_id, *found in rows
    }


def windows_over_limit(rows: Iterable[MemoryRow]) -> dict[str, WindowView]:
    """Return the windows of those conversations in `rows` that are over their limit, by
    conversation id.
    """
    over = {row.id: row for row in rows if row.is_over_limit}
    if not over:
        return {}
    places: dict[str, list[MessageView]] = {memory_id: [] for memory_id in over}
    stays = Stay.objects.filter(memory_id__in=list(over), left_step=None).order_by("rank")
    for memory_id, *columns in stays.values_list("memory_id", *VIEW_COLUMNS):
        places[memory_id].append(view_from(columns))
    return {
        id: view_of(row.last_step, row.policy, with_tool_messages(id, places[id], row.policy))
        for id, row in over.items()
    }


@dataclass(frozen=True)
class OverviewStats:
    """Statistics of all conversations. `active`, `forgotten` and `forgotten_in` count since a given
    time.

    - `active`: the number of conversations that changed.
    - `forgotten`: the number of messages that left memory at adds, in `forgotten_in` conversations.
    - `flagged`: for the name of each flag, the number of conversations with this flag.
    - `erasure`: the id of the newest deletion or redaction in the audit log; 0 if the log is empty.
      If the log has a newer id, the statistics are out of date.
    - `unexamined`: the number of conversations whose derived data is missing or out of date.
    - `seconds_left`: the expected seconds until all derived data is up to date. None if
      `unexamined` is 0, or if there is no estimate.
    """

    conversations: int
    active: int
    forgotten: int
    forgotten_in: int
    flagged: Mapping[str, int]
    erasure: int
    unexamined: int
    seconds_left: int | None = None


def newest_erasure() -> int:
    """Return the id of the newest deletion or redaction in the audit log; 0 if the log is empty."""
    return _erasures().first() or 0


def _unexamined() -> Q:
    stale = Q(pk__isnull=True)  # none, without keepers
    for keeper in keepers():
        step, version = keeper.column("step"), keeper.column("version")
        stale |= ~Q(**{step: F("last_step"), version: keeper.version()})
    return stale & Q(last_step__gt=0, imported=None)


def _rate() -> dict[str, Aggregate]:
    """Return the expressions for the conversations that were examined in the last minute: their
    number, the first time and the last time.
    """
    if not keepers():
        return {}
    at = keepers()[-1].column("kept_at")
    minute_ago = microseconds(timezone.now() - timedelta(minutes=1))
    lately = Q(**{f"{at}__gte": minute_ago})
    return {
        "rated": Count("pk", filter=lately),
        "rated_first": Min(at, filter=lately),
        "rated_last": Max(at, filter=lately),
    }


def _seconds_left(counts: Mapping[str, int]) -> int | None:
    """Return the seconds until all conversations are examined, at the rate of the last minute. None
    if the rate is not known.
    """
    if not counts["unexamined"] or counts.get("rated", 0) < RATED:
        return None
    seconds = (counts["rated_last"] - counts["rated_first"]) / 1_000_000
    return max(1, round(counts["unexamined"] * seconds / counts["rated"]))


@dataclass(frozen=True)
class Examined:
    """The number of conversations with up-to-date derived data, such as incidents: `known` out of
    `whole`.

    `seconds_left` are the expected seconds until `known` equals `whole`. None if they are equal
    already, or if there is no estimate.
    """

    known: int
    whole: int
    seconds_left: int | None

    @property
    def is_all(self) -> bool:
        return self.known == self.whole


def examined(which: MemoryFilter) -> Examined:
    """Return how many of the conversations that match a filter have up-to-date derived data."""
    numbers = {"whole": Count("pk"), "unexamined": Count("pk", filter=_unexamined())}
    counts = which.rows().aggregate(**numbers, **_rate())
    known = counts["whole"] - counts["unexamined"]
    return Examined(known, counts["whole"], _seconds_left(counts))


def _erasures() -> QuerySet[AuditEntry, int]:
    return AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)


def overview_stats(since: datetime) -> OverviewStats:
    """Return the statistics of all conversations since a time."""
    active = Q(updated_at__gte=since)
    known = {flag: flag.where for flag in flags() if flag.name != ANY}
    any_of_them = reduce(or_, (where for flag, where in known.items() if flag.alarm.is_any))
    counts = Memory.objects.aggregate(
        conversations=Count("pk"),
        active=Count("pk", filter=active),
        **{flag.name: Count("pk", filter=where) for flag, where in known.items()},
        **{ANY: Count("pk", filter=any_of_them)},
        erasure=Max(Subquery(_erasures()[:1])),
        unexamined=Count("pk", filter=_unexamined()),
        **_rate(),
    )
    adds = evicting_adds().filter(at__gte=since)
    left = adds.aggregate(sum=Sum("evicted"), memories=Count("memory_id", distinct=True))
    return OverviewStats(
        conversations=counts["conversations"],
        active=counts["active"],
        flagged={name: counts[name] for name in (ANY, *(flag.name for flag in known))},
        forgotten=left["sum"] or 0,
        forgotten_in=left["memories"],
        erasure=counts["erasure"] or 0,
        unexamined=counts["unexamined"],
        seconds_left=_seconds_left(counts),
    )


def outside(which: MemoryFilter, memory_ids: Collection[str]) -> set[str] | None:
    """Return which of these ids belong to conversations that a filter does not match. None if the
    filter's search finds too many conversations.
    """
    rows = countable(which)
    if rows is None:
        return None
    shown = rows.filter(which.columns(), id__in=memory_ids).values_list("id", flat=True)
    return set(memory_ids) - set(shown)


def count(which: MemoryFilter = EVERYTHING) -> int:
    """Return the number of conversations that match a filter."""
    return which.rows().count()


def count_each(filters: Mapping[Name, MemoryFilter]) -> dict[Name, int | None]:
    """Return the number of conversations that match each filter, by the filter's name. All are
    counted in one query.

    The filters may differ only in policy, flag, times of activity and `also`. All numbers are None
    if the filters' search finds too many conversations.
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
