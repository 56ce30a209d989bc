"""The filters of lists that hours know: the day or hour in which something was said or found, and
the provider and the model of recorded calls.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from chatmemory.patterns import declared_pattern
from inspector.rooms.hours.models import Hour

DAY = declared_pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2})?")


def narrowing(name: str, value: str) -> Q | None:
    """Return the condition of a filter, or None for an unknown one; a wrong day finds nothing."""
    if name == "provider":
        return Q(kepthours__provider=value)
    if name == "model":
        return Q(kepthours__model=value)
    if name != "day":
        return None
    times = times_of(value)
    if times is None:
        return Q(id="")
    hours = Hour.objects.filter(hour__gte=times[0], hour__lt=times[1]).values("memory")
    return Q(id__in=hours)


def times_of(value: str) -> tuple[int, int] | None:
    """Return the beginning and the end of a day or an hour, in seconds since 1970."""
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
