"""The cases of a cause: the conversations that have a flag, with their beginnings by day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery

from chatmemory.flag import Flag, Line
from chatmemory.models import Memory, Step
from chatmemory.reading.feed import microseconds, time_of

DAYS = 14


@dataclass(frozen=True)
class Cases:
    """The conversations that have a flag: their number, and the number of cases that began on each
    of the last days, today last. `since` is the beginning of the oldest case, and `newest` the id
    of the conversation with the newest. `change` describes the effect of the newest change of a
    policy. `begun` also counts, for each day, the known cases that have been repaired since.
    """

    count: int
    since: datetime | None = None
    by_day: tuple[int, ...] = ()
    newest: str = ""
    change: PolicyChange | None = None
    begun: tuple[int, ...] = ()

    @property
    def new_today(self) -> int:
        return self.by_day[-1] if self.by_day else 0


@dataclass(frozen=True)
class PolicyChange:
    """The newest change of a policy, and the number of cases that began on a day before it and
    after it.

    `before` and `after` are cases a day, of the last days and of at least one day.
    """

    at: datetime
    day: int
    before: float
    after: float


def newest_policy_change(since: datetime) -> datetime | None:
    """Return the time of the newest change of a policy since a time, or None."""
    steps = Step.objects.filter(kind=Step.Kind.POLICY, at__gte=since)
    at: datetime | None = steps.aggregate(at=Max("at"))["at"]
    return at


def cases_of(
    flag: Flag, midnights: Sequence[datetime], now: datetime, changed: datetime | None = None
) -> Cases:
    """Return the cases of a flag. `midnights` are the beginnings of the last days, the first first,
    and at `changed` a policy was changed.

    Days and times are known only of a flag that says when its cases began.
    """
    rows, line = Memory.objects.filter(flag.where), flag.line
    if line is None or not (line.began_at or line.step_column):
        newest = rows.order_by("-updated_at", "-pk").values_list("pk", flat=True).first()
        return Cases(rows.count(), newest=newest or "")
    rows = _with_times(rows, line)
    counts = {f"day_{n}": when for n, when in enumerate(_days(line, midnights))}
    if changed:
        counts["before"] = _between(line, midnights[0], changed)
        counts["after"] = _between(line, changed, None)
    counted = {name: Count("pk", filter=when) for name, when in counts.items()}
    found = rows.aggregate(count=Count("pk"), since=Min("began"), **counted)
    newest = rows.order_by(F("began").desc(nulls_last=True), "-pk").values_list("pk", flat=True)
    change = None
    if changed:
        change = PolicyChange(
            changed,
            max(n for n, begin in enumerate(midnights) if begin <= changed),
            found["before"] / _days_between(midnights[0], changed),
            found["after"] / _days_between(changed, now),
        )
    by_day = tuple(found[f"day_{n}"] for n in range(len(midnights)))
    return Cases(found["count"], _time(found["since"]), by_day, newest.first() or "", change)


def _with_times(rows: QuerySet[Memory], line: Line) -> QuerySet[Memory]:
    if line.began_at:
        return rows.annotate(began=F(line.began_at))
    steps = Step.objects.filter(memory=OuterRef("pk"), n=OuterRef(line.step_column))
    return rows.annotate(began=Subquery(steps.values("at")))


def _days(line: Line, midnights: Sequence[datetime]) -> Iterator[Q]:
    """Yield the condition for each day; the last one goes on."""
    for begin, end in zip(midnights, [*midnights[1:], None], strict=True):
        yield _between(line, begin, end)


def _between(line: Line, begin: datetime, end: datetime | None) -> Q:
    condition = Q(began__gte=_moment(line, begin))
    return condition & Q(began__lt=_moment(line, end)) if end else condition


def _moment(line: Line, at: datetime) -> datetime | int:
    return microseconds(at) if line.began_at else at


def _time(began: Any) -> datetime | None:
    return time_of(began) if isinstance(began, int) else began


def _days_between(begin: datetime, end: datetime) -> float:
    return max(1.0, (end - begin).total_seconds() / 86_400)
