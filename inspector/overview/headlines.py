"""The numbers at the top of the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from time import perf_counter

from django.core.cache import cache
from django.utils import timezone

from chatmemory import queries
from inspector.overview.asked import midnight

CACHED_AS = "inspector.overview.headlines"
LEAST_SECONDS, MOST_SECONDS = 1, 30
SHARE = 20


@dataclass(frozen=True)
class Headlines:
    """The statistics of all conversations, when they were counted and until when they are kept.
    What changed after `moment` may be missing.
    """

    at: datetime
    until: datetime
    moment: int
    stats: queries.OverviewStats

    def milliseconds_left(self) -> int:
        """Return after how long the statistics are counted again."""
        return max(0, round((self.until - timezone.now()) / timedelta(milliseconds=1)))


def current_headlines(moment: int) -> Headlines:
    """Return the statistics as they were counted last, or count them again: `moment` is the newest
    change that the caller has seen, which they hold then.

    They read all steps of today, so they are kept for 20 times as long as the counting took, from
    1 to 30 seconds, whoever asks.
    """
    kept: Headlines | None = cache.get(CACHED_AS)
    if kept is not None:
        return kept
    at, started = timezone.now(), perf_counter()
    stats = queries.overview_stats(midnight())
    seconds = kept_seconds(perf_counter() - started)
    counted = Headlines(at, timezone.now() + timedelta(seconds=seconds), moment, stats)
    cache.set(CACHED_AS, counted, seconds)
    return counted


def kept_seconds(took: float) -> float:
    """Return for how long numbers are kept that took so many seconds to count."""
    return min(max(SHARE * took, LEAST_SECONDS), MOST_SECONDS)
