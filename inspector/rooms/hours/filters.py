"""Filters of conversation lists: by a day or an hour, and by the provider or model of the newest
recorded call. The filter by a day or an hour finds the conversations with hourly figures in that
time.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from chatmemory.patterns import declared_pattern
from inspector.rooms.hours.fleet import Counting, causes, counted_flags, spent
from inspector.rooms.hours.models import Hour

NONE = Q(id="")  # no conversation has an empty id
DAY = declared_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2})?")


def narrowing(name: str, value: str) -> Q | None:
    """Return the database condition of a filter; None for an unknown filter. An invalid day matches
    nothing.
    """
    if name == "provider":
        return Q(kepthours__provider=value)
    if name == "model":
        return Q(kepthours__model=value)
    if name != "day":
        return None
    times = times_of(value)
    return Q(id__in=_hours(times).values("memory")) if times else NONE


def _hours(times: tuple[int, int]) -> QuerySet[Hour]:
    return Hour.objects.filter(hour__gte=times[0], hour__lt=times[1])


def cases_on(day: str, name: str) -> dict[str, int] | None:
    """Return how many cases of the flag `name` began on a day or in an hour, by conversation ID.
    Return None for a flag that is not counted.

    `day` is such as `2026-01-31`, `2026-01-31T14` or `today`. The bars of the overview show the
    same numbers.
    """
    flag = next((each for each in [*counted_flags(), *causes()] if each.name == name), None)
    if flag is None:
        return None
    times, counting = times_of(day), Counting.of([flag])
    found: Counter[str] = Counter()
    for row in spent(*times, flag=name.partition(".")[0]) if times else ():
        found[row.memory_id] += counting.number(row, flag)
    return {memory_id: number for memory_id, number in found.items() if number}


def times_of(value: str) -> tuple[int, int] | None:
    """Return the start and the end of a day or an hour, in seconds since 1970. `value` is such as
    `2026-01-31`, `2026-01-31T14` or `today`. Return None for another text.
    """
    if value == "today":
        value = f"{timezone.localdate():%Y-%m-%d}"
    if not DAY.fullmatch(value):
        return None
    try:
        begin = datetime.fromisoformat(value if "T" not in value else f"{value}:00")
    except ValueError:
        return None
    length = timedelta(hours=1) if "T" in value else timedelta(days=1)
    zone = timezone.get_default_timezone()
    ends = (begin.replace(tzinfo=zone), (begin + length).replace(tzinfo=zone))
    return int(ends[0].timestamp()), int(ends[1].timestamp())
