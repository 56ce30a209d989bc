"""Limits how many requests a caller may make in a period.

A rate of 100/minute allows 100 requests in each minute of the clock. The requests are counted in a
cache, which several processes may share.
"""

from __future__ import annotations

import logging
from functools import cache
from time import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.cache import BaseCache, caches
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.checks import Warning as Caution
from rest_framework.throttling import SimpleRateThrottle

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

ALIAS = "chatmemory"
KEYS_MAX = 10_000
KEPT_LONGER = 10  # seconds, since the clocks of machines differ

logger = logging.getLogger(__name__)


class Rates:
    """Counts requests in a cache, and refuses those beyond a limit."""

    def __init__(self, counts: BaseCache) -> None:
        self._counts = counts

    def wait(self, key: str, limit: int, seconds: int) -> float | None:
        """Count a request. Return None if the request is allowed, else the seconds to wait before
        the request may be repeated.

        `key` says for whom the request is counted, such as `token-7`. At most `limit` requests with
        the same key are allowed in each period of `seconds`. Periods follow the clock: with 60,
        each minute of the clock is a period.
        """
        now = time()
        count = self._add(f"{key}-{int(now // seconds)}", seconds + KEPT_LONGER)
        return seconds - now % seconds if count > limit else None

    def forget(self) -> None:
        """Reset all counts. This empties the whole cache, including what other code stored in
        it.
        """
        self._counts.clear()

    def _add(self, name: str, lasting: int) -> int:
        """Add 1 to the count of this name, and return the new count. The count is dropped after
        `lasting` seconds.
        """
        self._counts.add(name, 0, lasting)
        try:
            return self._counts.incr(name)
        except ValueError:  # evicted in between: the cache is full, or keeps nothing
            return 1


class SharedRates(Rates):
    """Counts requests in the project's cache, or in this process while that cache cannot be
    reached.
    """

    def _add(self, name: str, lasting: int) -> int:
        try:
            return super()._add(name, lasting)
        except Exception as error:  # each cache has its own kinds of errors
            logger.warning(
                "the cache that counts requests failed, so each process counts its own: %s",
                type(error).__name__,
            )
            return process_rates()._add(name, lasting)


@cache
def process_rates() -> Rates:
    """Return the `Rates` object that counts requests in the memory of this process. When the object
    has 10,000 counts, it drops the least recently used counts.
    """
    return Rates(LocMemCache("chatmemory.access.rates", {"OPTIONS": {"MAX_ENTRIES": KEYS_MAX}}))


@cache
def shared_rates() -> Rates:
    """Return the object that counts requests in CACHES["chatmemory"] or, if that is not set, in
    CACHES["default"].

    All calls return the same object, so that all requests share one connection to the cache.
    """
    return SharedRates(caches[_alias()])


def _alias() -> str:
    return ALIAS if ALIAS in settings.CACHES else "default"


def check_requests_are_counted(**_: object) -> list[Caution]:
    """Return a warning if the cache that counts requests is a DummyCache, which keeps nothing. Else
    return []. This is a system check of Django.
    """
    if not isinstance(caches[_alias()], DummyCache):
        return []
    return [
        Caution(
            f"CACHES[{_alias()!r}] is a DummyCache, which keeps nothing: requests are not limited",
            hint=f"Set CACHES[{ALIAS!r}] to Redis, Memcached or the memory of a process.",
            id="chatmemory.W003",
        )
    ]


class SharedThrottle(SimpleRateThrottle):
    """Base class of REST framework throttles that count requests in the shared cache.

    The rate, such as `100/minute`, comes from REST framework's setting DEFAULT_THROTTLE_RATES. In
    this setting, the key of the rate is the value of `scope`. If the setting lacks this key, the
    rate is `default`.

    - `num_requests`: the number of requests allowed in a period, such as 100. None means that all
      requests are allowed.
    - `duration`: the length of a period in seconds, such as 60.
    """

    scope: str
    default: str
    num_requests: int | None
    duration: int
    _seconds: float | None = None

    def get_rate(self) -> str | None:
        return self.THROTTLE_RATES.get(self.scope, self.default)

    def allow_request(self, request: Any, view: Any) -> bool:  # also for Django's requests
        key = self.get_cache_key(request, view)
        self._seconds = None
        if key is not None and self.num_requests is not None:
            self._seconds = shared_rates().wait(key, self.num_requests, self.duration)
        return self._seconds is None

    def wait(self) -> float | None:
        """Return the seconds to wait before a refused request may be repeated. None if the request
        was allowed.
        """
        return self._seconds


class PerCaller(SharedThrottle):
    """Limits the requests per token or signed-in user, so that a runaway client does not block
    other clients.
    """

    scope = "caller"
    default = "1000/second"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        if request.auth:
            return f"token-{request.auth.pk}"
        return f"user-{request.user.pk}" if request.user.is_authenticated else None


class PerAddress(SharedThrottle):
    """Limits the requests per client address."""

    def get_cache_key(self, request: Request, view: APIView) -> str:
        return self.key_of(request.META.get("REMOTE_ADDR", ""))

    def key_of(self, address: str) -> str:
        return f"{self.scope}-{address}"


class PerStranger(PerAddress):
    """Limits, for each client address, the requests without a valid token or session. Other
    requests are not counted.
    """

    scope = "stranger"
    default = "100/minute"
