"""Formats times for pages: `28 Nov, 07:06`. All words for times are made here."""

from __future__ import annotations

from datetime import date, datetime

from django.utils import timezone

MINUTE = 60  # seconds
FORMS = {
    "day": "%-d %b",
    "day alone": "%-d",
    "weekday": "%a %-d %b",
    "date": "%-d %b %Y",
    "long date": "%-d %B %Y",
    "minute": "%H:%M",
    "second": "%H:%M:%S",
    "zone": "%Z",
}


def written(at: datetime | date | int, *forms: str) -> str:
    """Format a time in some of `FORMS`, joined by commas: `written(at, "day", "minute")` is `28
    Nov, 07:06`.

    A datetime and an int (seconds since 1970) are shown in the site's time zone.
    """
    return formatted(there(at), *forms)


def formatted(local: datetime | date, *forms: str) -> str:
    """Format a time like `written`, but do not convert it to the site's time zone."""
    return ", ".join([format(local, FORMS[form]) for form in forms])


def there(at: datetime | date | int) -> datetime | date:
    """Return a time in the site's time zone. A date, or a time without a zone, is unchanged."""
    if isinstance(at, int):
        return datetime.fromtimestamp(at, timezone.get_default_timezone())
    return timezone.localtime(at) if isinstance(at, datetime) and at.tzinfo else at


def time_left(seconds: int | None) -> str:
    """Return how long something still takes, in words: `90 s`, `3 minutes`. "" if nobody knows."""
    if not seconds:
        return ""
    return f"{seconds:,} s" if seconds < 2 * MINUTE else f"{round(seconds / MINUTE):,} minutes"


def is_today(at: datetime | date | int) -> bool:
    local = there(at)
    return (local.date() if isinstance(local, datetime) else local) == timezone.localdate()
