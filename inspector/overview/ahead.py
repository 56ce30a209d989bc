"""Counts the conversations of a large site for the overview in a background thread of the server.

Counting reads each conversation, which takes long. So readers of a large site get the numbers of
the last count, with its time, and the thread counts again after changes. On a small site, or
without the thread, the overview counts when it is opened.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from time import perf_counter
from typing import NamedTuple

from django.core.cache import cache
from django.utils import timezone

from chatmemory.models import Memory
from chatmemory.reading.feed import newest_change
from chatmemory.reading.overview import newest_erasure
from chatmemory.services import newest_kept
from inspector.overview.causes import COUNTED_AHEAD, Headlines, counted_headlines, kept_seconds
from inspector.overview.selection import OverviewQuery, midnight

SEEN_AS = f"{COUNTED_AHEAD}.seen"
MANY = 5_000  # conversations; fewer are counted by the reader
LASTS = 60  # seconds for which a count is read after the thread has ended


class Seen(NamedTuple):
    """The state of the site at the time of a count. The count is current while this state is the
    same.

    - `change` is the time of the newest change, in microseconds since 1970.
    - `erasure` is the ID of the newest entry in the audit log about an erasure; 0 without entries.
    - `kept` is the time at which the newest row of derived data was stored, in microseconds since
      1970; 0 without rows.
    - `day` is the start of today.
    """

    change: int
    erasure: int
    kept: int
    day: datetime

    @classmethod
    def now(cls) -> Seen:
        return cls(newest_change(), newest_erasure(), newest_kept(), midnight())


def count_ahead() -> None:
    """Count the conversations of a large site if something has changed since the last count. Do
    nothing on a small site, or soon after a count that took long.
    """
    now, known = Seen.now(), cache.get(COUNTED_AHEAD)
    if known and (cache.get(SEEN_AS) == now or timezone.now() < known.counted.until):
        cache.touch(COUNTED_AHEAD, LASTS)
        cache.touch(SEEN_AS, LASTS)
    elif Memory.objects.order_by("pk")[MANY:].exists():
        cache.set_many({COUNTED_AHEAD: _counted(now.change), SEEN_AS: now}, LASTS)
    else:
        cache.delete(COUNTED_AHEAD)


def _counted(moment: int) -> Headlines:
    started = perf_counter()
    query = OverviewQuery()
    found = counted_headlines(moment, query)
    found = replace(found, counted=replace(found.counted, filters=query.counts))
    return found.cached_for(kept_seconds(perf_counter() - started))
