"""Counts the conversations that have a flag (a reason for attention). Each of these conversations
is a case. The module also finds when each case began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery

from chatmemory.flag import Flag, Line
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory, Step
from chatmemory.reading.feed import microseconds, time_of
from inspector.shell.chosen import IDS_MAX

DAYS = 14


@dataclass(frozen=True)
class Cases:
    """The conversations that have a flag. Each of these conversations counts as one case.

    - `count` is the number of cases.
    - `since` is when the oldest case began.
    - `by_day` has the number of cases that began on each of the last days, today last.
    - `newest` is the ID of the conversation whose case began last; "" without cases.
    - `begun` has, for each of these days, the highest number that `by_day` has had so far. So cases
      that were repaired later are included. It is empty if the overview is filtered.
    - `ids` are the IDs of the conversations, if the URL of the flag's link on the overview lists
      these IDs. Otherwise `ids` is empty, such as for more than 50 conversations.

    If the flag does not record when its cases began, `since` is None, and `by_day`, `begun` and
    `ids` are empty. `newest` is then the ID of the conversation that changed last.
    """

    count: int
    since: datetime | None = None
    by_day: tuple[int, ...] = ()
    newest: str = ""
    begun: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def new_today(self) -> int:
        return self.by_day[-1] if self.by_day else 0


def cases_of(
    flag: Flag,
    midnights: Sequence[datetime],
    among: MemoryQuerySet | None = None,
    newest: str = "",
) -> Cases:
    """Return the cases of a flag in all conversations, or only in the conversations `among`.

    `midnights` are the starts of the last days, oldest first. `newest` is the ID of the
    conversation with the newest case, if known. The result has days and times only for a flag that
    records when its cases began.
    """
    every = Memory.objects.all() if among is None else among
    rows, line = every.filter(flag.where), flag.line
    if line is None or not (line.began_at or line.step_column):
        latest = rows.order_by("-updated_at", "-pk").values_list("pk", flat=True)
        return Cases(rows.count(), newest=newest or latest.first() or "")
    rows = _with_times(rows, line)
    counts = {f"day_{n}": when for n, when in enumerate(_days(line, midnights))}
    counted = {name: Count("pk", filter=when) for name, when in counts.items()}
    found = rows.aggregate(count=Count("pk"), since=Min("began"), **counted)
    latest = rows.order_by(F("began").desc(nulls_last=True), "-pk").values_list("pk", flat=True)
    by_day = tuple(found[f"day_{n}"] for n in range(len(midnights)))
    is_named = line.names_ids or (among is not None and line.reads_ids)
    ids = tuple(latest) if is_named and found["count"] <= IDS_MAX else ()
    newest = newest or next(iter(ids), "") or latest.first() or ""
    return Cases(found["count"], time_in(found["since"]), by_day, newest, ids=ids)


def _with_times(rows: QuerySet[Memory], line: Line) -> QuerySet[Memory]:
    return rows.annotate(began=_began(line))


def beginning(flag: Flag) -> F | Subquery | None:
    """Return the database expression for when a case of a flag began, or None if the flag does not
    record this.
    """
    line = flag.line
    return _began(line) if line and (line.began_at or line.step_column) else None


def _began(line: Line) -> F | Subquery:
    if line.began_at:
        return F(line.began_at)
    steps = Step.objects.filter(memory=OuterRef("pk"), n=OuterRef(line.step_column))
    return Subquery(steps.values("at"))


def _days(line: Line, midnights: Sequence[datetime]) -> Iterator[Q]:
    """Yield the condition for the cases that began on each day. The last day has no end."""
    for begin, end in zip(midnights, [*midnights[1:], None], strict=True):
        yield _between(line, begin, end)


def _between(line: Line, begin: datetime, end: datetime | None) -> Q:
    condition = Q(began__gte=_moment(line, begin))
    return condition & Q(began__lt=_moment(line, end)) if end else condition


def _moment(line: Line, at: datetime) -> datetime | int:
    return microseconds(at) if line.began_at else at


def time_in(began: datetime | int | None) -> datetime | None:
    return time_of(began) if isinstance(began, int) else began
