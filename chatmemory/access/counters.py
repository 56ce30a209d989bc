"""Where requests are counted for all processes: in our database, or in Redis."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from chatmemory import database
from chatmemory.access.rates import Total
from chatmemory.models import RequestCount

FORGOTTEN_AT_ONCE = 100
REDIS_SECONDS = 0.2

logger = logging.getLogger(__name__)


class DatabaseCounter:
    """Counts in rows, and adds nothing while another writer holds a row or a SQLite database."""

    def add(self, key: str, count: int, seconds: float) -> Total | None:
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
