"""How many requests a caller may make, counted over all processes and machines.

Each process counts by itself, and adds what it has counted to a counter that all share whenever it
is a twentieth of the limit. So a caller who asks seldom costs no write, and the processes together
allow more than the limit by less than a twentieth of it for each of them.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from time import monotonic
from typing import Any, NamedTuple

from django.db import DatabaseError
from django.utils import timezone
from rest_framework.throttling import SimpleRateThrottle

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.models import RequestCount

PARTS = 20
KEYS_MAX = 10_000
FORGOTTEN_AT_ONCE = 100
REDIS_SECONDS = 0.2

logger = logging.getLogger(__name__)


class Total(NamedTuple):
    """What all processes have counted, and in how many seconds the count begins anew."""

    requests: int
    seconds: float


class DatabaseCounter:
    """Counts in rows, and adds nothing while another writer holds a row or a SQLite database."""

    def add(self, key: str, count: int, seconds: float) -> Total | None:
        """Add to the count of a key, which begins anew some seconds after its first addition.

        Return None if nothing can be added at present.
        """
        try:
            with database.nowait():
                return _added(key, count, timedelta(seconds=seconds))
        except DatabaseError:
            return None


def _added(key: str, count: int, lasting: timedelta) -> Total:
    now = timezone.now()
    begun = RequestCount(key=key, count=0, ends_at=now + lasting)
    RequestCount.objects.bulk_create([begun], ignore_conflicts=True)
    row = RequestCount.objects.select_for_update().get(pk=key)
    if row.ends_at <= now:
        row.count, row.ends_at = 0, begun.ends_at
    row.count += count
    row.save()
    if row.count == count:
        forget_ended_counts(FORGOTTEN_AT_ONCE)
    return Total(row.count, (row.ends_at - now).total_seconds())


def forget_ended_counts(most: int | None = None) -> None:
    """Delete counts whose time is over, for keys may be addresses of people."""
    ended = RequestCount.objects.filter(ends_at__lte=timezone.now())
    with database.atomic():
        some = ended.select_for_update(skip_locked=True).values_list("pk", flat=True)[:most]
        RequestCount.objects.filter(key__in=list(some)).delete()


class RedisCounter:
    """Counts in Redis, which forgets by itself. It needs the extra `redis`."""

    def __init__(self, url: str) -> None:
        import redis

        timeouts = {"socket_timeout": REDIS_SECONDS, "socket_connect_timeout": REDIS_SECONDS}
        self._errors = redis.RedisError
        self._client: Any = redis.Redis.from_url(url, **timeouts)

    def add(self, key: str, count: int, seconds: float) -> Total | None:
        """Add to a count as DatabaseCounter does."""
        name = f"chatmemory:{key}"
        try:
            with self._client.pipeline() as pipeline:
                pipeline.set(name, 0, nx=True, px=round(1000 * seconds))
                pipeline.incrby(name, count)
                pipeline.pttl(name)
                _, total, milliseconds = pipeline.execute()
        except self._errors as error:
            logger.warning("Redis does not count requests: %s", type(error).__name__)
            return None
        return Total(total, milliseconds / 1000)


@dataclass
class _Tally:
    """The count of a key: what was in the shared one, and what this process has not yet added."""

    ends_at: float
    due: int
    shared: int = 0
    own: int = 0


class Rates:
    """The counts of this process; of very many keys, those of the latest requests.

    Without a counter, the process counts alone.
    """

    def __init__(self, counter: DatabaseCounter | RedisCounter | None = None) -> None:
        self._counter = counter
        self._tallies: OrderedDict[str, _Tally] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, key: str, limit: int, seconds: float) -> float | None:
        """Count a request and return None, or return in how many seconds it may be made.

        `limit` is how many may be made in `seconds`.
        """
        part = max(1, limit // PARTS)
        with self._lock:
            tally = self._tally(key, part, seconds)
            if tally.shared + tally.own >= limit:
                return tally.ends_at - monotonic()
            tally.own += 1
            if tally.own < tally.due:
                return None
            added, tally.own = tally.own, 0
            tally.shared += added
        total = self._counter.add(key, added, seconds) if self._counter else None
        with self._lock:
            if total is None:
                tally.shared, tally.own = tally.shared - added, tally.own + added
                tally.due = tally.own + part
                return None
            tally.shared, tally.due = total.requests, part
            tally.ends_at = monotonic() + total.seconds
            return total.seconds if total.requests > limit else None

    def _tally(self, key: str, due: int, seconds: float) -> _Tally:
        """Return the tally of a key, a new one if there is none or its time is over."""
        tally = self._tallies.pop(key, None)
        if tally is None or tally.ends_at <= monotonic():
            tally = _Tally(monotonic() + seconds, due)
        self._tallies[key] = tally
        if len(self._tallies) > KEYS_MAX:
            self._tallies.popitem(last=False)
        return tally


@cache
def shared_rates() -> Rates:
    """Return the counts of this process, which are shared with all others."""
    url = configuration().REDIS_URL
    return Rates(RedisCounter(url) if url else DatabaseCounter())


class SharedThrottle(SimpleRateThrottle):
    """Limits the requests of a key over all processes.

    DEFAULT_THROTTLE_RATES of REST framework's settings has the rate of a scope, where None is no
    limit; `default` is the rate of a scope that is not there.
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
            self._seconds = shared_rates().wait(key, self.num_requests, self.duration)
        return self._seconds is None

    def wait(self) -> float | None:
        """Return after how many seconds a refused request may be repeated."""
        return self._seconds


class PerCaller(SharedThrottle):
    """Counts the requests of a token, or of a signed-in user, so that one runaway client does not
    block the others.
    """

    scope = "caller"
    default = "1000/second"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        if request.auth:
            return f"token-{request.auth.pk}"
        return f"user-{request.user.pk}" if request.user.is_authenticated else None


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
