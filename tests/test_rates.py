"""Requests are counted over all processes, of which each has `Rates` of its own."""

from __future__ import annotations

from datetime import timedelta
from os import environ
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis import ConnectionError as RedisConnectionError

from chatmemory.access.rates import (
    PARTS,
    DatabaseCounter,
    Rates,
    RedisCounter,
    Total,
    forget_ended_counts,
)
from chatmemory.conf import check_settings
from chatmemory.models import RequestCount

CALLER, OTHER = f"token-{uuid4()}", f"token-{uuid4()}"  # each process of tests has its own
LOCKS = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "BEGIN; LOCK TABLE chatmemory_requestcount IN EXCLUSIVE MODE",
}


def redis_counter() -> RedisCounter:
    """A counter in the Redis of TEST_REDIS_URL, or of this machine; its counts begin anew."""
    counter = RedisCounter(environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15"))
    try:
        counter._client.delete(f"chatmemory:{CALLER}", f"chatmemory:{OTHER}")
    except RedisConnectionError as error:
        pytest.skip(f"no Redis answers, set TEST_REDIS_URL to another: {error}")
    return counter


@pytest.fixture(params=["database", "redis"])
def counter(request, db):
    return DatabaseCounter() if request.param == "database" else redis_counter()


def allowed(processes, asked: int, limit: int, key: str = CALLER) -> int:
    """How many of the requests are allowed that reach the processes in turns."""
    return sum(processes[n % len(processes)].wait(key, limit, 60) is None for n in range(asked))


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_limit_is_that_of_all_processes_together(counter, processes):
    """A large one is exceeded by less than a part of it for each process."""
    rates = [Rates(counter) for _ in range(processes)]
    assert allowed(rates, 50, limit=10, key=OTHER) == 10
    limit = 200
    most = limit + processes * (limit // PARTS - 1)
    assert limit <= allowed(rates, 1_000, limit) <= most


def test_callers_are_counted_apart(counter):
    rates = [Rates(counter), Rates(counter)]
    assert allowed(rates, 20, limit=5) == allowed(rates, 20, limit=5, key=OTHER) == 5


def test_who_is_refused_learns_how_long_to_wait(counter):
    rates = Rates(counter)
    assert [rates.wait(CALLER, 2, 60) for _ in range(2)] == [None, None]
    assert 59 < rates.wait(CALLER, 2, 60) <= 60
    assert 59 < Rates(counter).wait(CALLER, 2, 60) <= 60


def test_a_count_begins_anew_for_all_processes_together(db):
    assert allowed([Rates(DatabaseCounter())], 3, limit=2) == 2
    RequestCount.objects.update(ends_at=timezone.now())
    assert allowed([Rates(DatabaseCounter())], 1, limit=2) == 1
    RequestCount.objects.update(ends_at=timezone.now() + timedelta(seconds=5))
    late = Rates(DatabaseCounter())
    assert allowed([late], 2, limit=2) == 1
    assert late.wait(CALLER, 2, 60) <= 5


def test_few_requests_write_nothing_and_many_write_once_for_each_part(db):
    rates = Rates(DatabaseCounter())
    with CaptureQueriesContext(connection) as few:
        allowed([rates], 49, limit=1_000)
    assert len(few) == 0
    allowed([rates], 101, limit=1_000)
    assert RequestCount.objects.get().count == 150
    allowed([rates], 2_000, limit=150)
    with CaptureQueriesContext(connection) as refused:
        assert allowed([rates], 100, limit=150) == 0
    assert len(refused) == 0


class Remote:
    """A counter that can be out of reach."""

    def __init__(self) -> None:
        self.count, self.is_reachable = 0, False

    def add(self, key, count, seconds):
        if not self.is_reachable:
            return None
        self.count += count
        return Total(self.count, seconds)


def test_a_process_counts_alone_while_the_counter_is_out_of_reach():
    assert allowed([Rates(Remote())], 50, limit=40) == allowed([Rates()], 50, limit=40) == 40
    counter = Remote()
    rates = Rates(counter)
    allowed([rates], 11, limit=100)
    counter.is_reachable = True
    allowed([rates], 4, limit=100)
    assert counter.count == 15  # what could not be added is added later
    allowed([rates], 5, limit=100)
    assert counter.count == 20


def test_a_count_does_not_wait_for_another_writer(committing):
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute(LOCKS[connection.vendor])
        assert DatabaseCounter().add(CALLER, 1, 60) is None
        cursor.execute("ROLLBACK")
    other.close()
    assert DatabaseCounter().add(CALLER, 1, 60).requests == 1


def test_counts_are_forgotten_when_their_time_is_over(db):
    ended = timezone.now() - timedelta(seconds=1)
    for key in ("stranger-192.0.2.7", "stranger-192.0.2.8"):
        RequestCount.objects.create(key=key, count=9, ends_at=ended)
    DatabaseCounter().add(CALLER, 5, 60)
    assert [row.key for row in RequestCount.objects.all()] == [CALLER]
    RequestCount.objects.update(ends_at=ended)
    forget_ended_counts()
    assert not RequestCount.objects.exists()


def test_a_request_forgets_only_a_few_counts(db, monkeypatch):
    monkeypatch.setattr("chatmemory.access.rates.FORGOTTEN_AT_ONCE", 2)
    for n in range(5):
        RequestCount.objects.create(key=f"stranger-{n}", count=9, ends_at=timezone.now())
    DatabaseCounter().add(CALLER, 5, 60)
    assert RequestCount.objects.count() == 4


def test_of_very_many_keys_those_of_the_latest_requests_are_counted(monkeypatch):
    monkeypatch.setattr("chatmemory.access.rates.KEYS_MAX", 3)
    rates = Rates(Remote())
    often = 0
    for n in range(10):
        often += allowed([rates], 1, limit=5)
        rates.wait(f"stranger-{n}", 5, 60)
    assert often == allowed([rates], 9, limit=5, key=OTHER) == 5
    assert len(rates._tallies) == 3


def test_redis_is_an_extra(monkeypatch):
    monkeypatch.setattr("chatmemory.conf.find_spec", {}.get)
    with (
        override_settings(CHATMEMORY={"REDIS_URL": "redis://localhost"}),
        pytest.raises(ImproperlyConfigured, match=r"pip install '\.\[redis\]'"),
    ):
        check_settings()
