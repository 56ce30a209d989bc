"""Local hours and days in the site's time zone. At a change to or from daylight saving time, a day
has 23 or 25 hours.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from django.utils import timezone

HOUR = 3_600


def hour_of(at: datetime, zone: tzinfo | None = None) -> int:
    """Return the start of the local hour that contains `at`, in seconds since 1970. Without a
    `zone`, the time zone of the site counts.

    When a clock is set back, the same hour of the day occurs twice. The two hours have different
    starts.
    """
    local = at.astimezone(zone or timezone.get_default_timezone())
    offset = local.utcoffset()
    shift = int(offset.total_seconds()) if offset else 0
    seconds = int(local.timestamp())
    return seconds - (seconds + shift) % HOUR


def day_of(hour: int) -> datetime:
    """Return the beginning of the local day that contains an hour. `hour` is in seconds since
    1970.
    """
    local = datetime.fromtimestamp(hour, timezone.get_default_timezone())
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def days_until(now: datetime, count: int) -> list[int]:
    """Return the starts of the last `count` local days, today last, in seconds since 1970."""
    today = day_of(int(now.timestamp()))
    days = [today]
    while len(days) < count:
        days.append(_day_before(days[-1]))
    return [int(each.timestamp()) for each in reversed(days)]


def _day_before(day: datetime) -> datetime:
    """Return the day before; it may have 23 or 25 hours."""
    noon = day.replace(hour=12) - timedelta(days=1)
    return noon.replace(hour=0, fold=0)


def hours_until(now: datetime, count: int) -> list[int]:
    """Return the starts of the last `count` hours, the current hour last, in seconds since 1970."""
    last = hour_of(now)
    return [last - HOUR * n for n in reversed(range(count))]
