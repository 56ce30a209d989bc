"""The numbers at the top of the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from time import perf_counter

from django.core.cache import cache
from django.utils import timezone

from chatmemory import queries
from inspector.overview.asked import midnight

LEAST_SECONDS, MOST_SECONDS = 1, 30
SHARE = 20


@dataclass(frozen=True)
class Headlines:
    """The statistics of all conversations, and the time at which they were counted."""

    at: datetime
    stats: queries.OverviewStats


def current_headlines() -> Headlines:
    """Return the statistics as they were counted last, or count them again.

    They read all steps of today, so they are kept for 20 times as long as the counting took, from
    1 to 30 seconds, whoever asks.
    """
    kept: Headlines | None = cache.get("headlines")
    if kept is not None:
        return kept
    started = perf_counter()
    counted = Headlines(timezone.now(), queries.overview_stats(midnight()))
    cache.set("headlines", counted, kept_seconds(perf_counter() - started))
    return counted


def kept_seconds(took: float) -> float:
    """Return for how long numbers are kept that took so many seconds to count."""
    return min(max(SHARE * took, LEAST_SECONDS), MOST_SECONDS)
