"""Throttles of REST framework that count over all processes and machines.

DEFAULT_THROTTLE_RATES of REST framework's settings sets the rates; None is no limit.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rest_framework.throttling import SimpleRateThrottle

from chatmemory.access.counters import DatabaseCounter, RedisCounter
from chatmemory.access.rates import Rates
from chatmemory.conf import configuration


@cache
def rates() -> Rates:
    """Return the counts of this process."""
    url = configuration().REDIS_URL
    return Rates(RedisCounter(url) if url else DatabaseCounter())


class SharedThrottle(SimpleRateThrottle):
    """Limits the requests of a key, with a rate of its own where the settings have none for its
    scope.
    """

    scope: str
    default: str
    num_requests: int | None
    duration: int
    _seconds: float | None = None

    def get_rate(self) -> str | None:
        return self.THROTTLE_RATES.get(self.scope, self.default)

    def allow_request(self, request: Any, view: Any) -> bool:
        key = self.get_cache_key(request, view)
        self._seconds = None
        if key is not None and self.num_requests is not None:
            self._seconds = rates().wait(key, self.num_requests, self.duration)
        return self._seconds is None

    def wait(self) -> float | None:
        """Return after how many seconds a refused request may be repeated."""
        return self._seconds


class PerAddress(SharedThrottle):
    """Counts the requests of an address."""

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.key_of(request.META.get("REMOTE_ADDR", ""))

    def key_of(self, address: str) -> str:
        return f"{self.scope}-{address}"


class PerStranger(PerAddress):
    """Counts requests that were refused for want of a valid token or session."""

    scope = "stranger"
    default = "100/minute"
