"""Times in words for all pages: `28 Nov, 07:06`."""

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
    "field": "%Y-%m-%dT%H:%M:%S",  # the value of a field of a form
}
_OF_DAY = {"minute": "minutes", "second": "seconds"}


def written(at: datetime | date | int, *forms: str) -> str:
    """Return a time in words. `forms` are names in `FORMS`: `written(at, "day", "minute")` is `28
    Nov, 07:06`.

    The words are in the site's time zone. An int is in seconds since 1970.
    """
    return formatted(there(at), *forms)


def formatted(local: datetime | date, *forms: str) -> str:
    """Return a time in words like `written`, but in the time zone of `local`."""
    return ", ".join([_in_form(local, form) for form in forms])


def _in_form(local: datetime | date, form: str) -> str:
    if form in _OF_DAY and isinstance(local, datetime):  # in an eighth of strftime's time
        return local.time().isoformat(_OF_DAY[form])
    return format(local, FORMS[form])


def there(at: datetime | date | int) -> datetime | date:
    """Convert a time to the site's time zone. A date, or a time without a zone, stays as it is."""
    if isinstance(at, int):
        return datetime.fromtimestamp(at, timezone.get_default_timezone())
    return timezone.localtime(at) if isinstance(at, datetime) and at.tzinfo else at


def time_left(seconds: int | None) -> str:
    """Return how long something still takes, in words: `90 s`, `3 minutes`. Return "" for None and
    0.
    """
    if not seconds:
        return ""
    return f"{seconds:,} s" if seconds < 2 * MINUTE else f"{round(seconds / MINUTE):,} minutes"


def is_today(at: datetime | date | int) -> bool:
    local = there(at)
    return (local.date() if isinstance(local, datetime) else local) == timezone.localdate()
