"""Requests are counted in a cache, which processes may share."""

from __future__ import annotations

from os import environ
from uuid import uuid4

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from django.core.management import call_command
from django.test import override_settings
from redis import ConnectionError as RedisConnectionError
from redis import Redis

from chatmemory.access.rates import KEYS_MAX, Rates, SharedRates, process_rates, shared_rates

CALLER, OTHER = f"token-{uuid4()}", f"token-{uuid4()}"  # each process of tests has its own
MINUTE = 1_000_000_020.0  # when a minute begins
LOCAL = "django.core.cache.backends.locmem.LocMemCache"
DUMMY = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}


def redis_cache() -> RedisCache:
    """The Redis of TEST_REDIS_URL, or of this machine."""
    url = environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
    try:
        Redis.from_url(url).ping()
    except RedisConnectionError as error:
        pytest.skip(f"no Redis answers, set TEST_REDIS_URL to another: {error}")
    return RedisCache(url, {"KEY_PREFIX": str(uuid4())})


@pytest.fixture(params=["memory", "redis"])
def counts(request) -> BaseCache:
    return redis_cache() if request.param == "redis" else LocMemCache(str(uuid4()), {})


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time that rates read, as the only item."""
    now = [MINUTE]
    monkeypatch.setattr("chatmemory.access.rates.time", lambda: now[0])
    return now


def allowed_count(processes: list[Rates], asked: int, limit: int, key: str = CALLER) -> int:
    """How many of the requests are allowed that reach the processes in turns."""
    return sum(processes[n % len(processes)].wait(key, limit, 60) is None for n in range(asked))


@pytest.mark.parametrize("processes", [1, 4])
def test_a_limit_is_that_of_all_processes_that_share_a_cache(counts, processes):
    assert allowed_count([Rates(counts) for _ in range(processes)], 50, limit=10) == 10


def test_callers_are_counted_apart(counts):
    rates = [Rates(counts)]
    assert allowed_count(rates, 20, limit=5) == allowed_count(rates, 20, limit=5, key=OTHER) == 5


def test_a_count_begins_anew_with_each_minute(counts, clock):
    rates = Rates(counts)
    clock[0] += 15
    assert [rates.wait(CALLER, 2, 60) for _ in range(3)] == [None, None, 45]
    clock[0] += 44
    assert rates.wait(CALLER, 2, 60) == 1
    clock[0] += 1
    assert [rates.wait(CALLER, 2, 60) for _ in range(3)] == [None, None, 60]


def test_a_process_counts_alone_while_the_cache_cannot_be_reached(caplog):
    rates = SharedRates(RedisCache("redis://127.0.0.1:1/0", {}))
    assert allowed_count([rates], 7, limit=5) == 5
    assert {record.getMessage() for record in caplog.records} == {
        "the cache that counts requests failed, so each process counts its own: ConnectionError"
    }


def test_a_cache_that_keeps_nothing_limits_nobody():
    assert allowed_count([Rates(DummyCache("", {}))], 7, limit=5) == 7


@pytest.mark.parametrize("alias", ["chatmemory", "default"])
def test_check_tells_of_a_cache_that_keeps_nothing(db, alias, capsys):
    others = {} if alias == "default" else {"default": {"BACKEND": LOCAL}}
    with override_settings(CACHES={alias: DUMMY, **others}):
        call_command("check")
    assert f"(chatmemory.W003) CACHES['{alias}'] is a DummyCache" in capsys.readouterr().err
    call_command("check")
    assert "W003" not in capsys.readouterr().err


def test_a_project_without_our_cache_counts_in_its_own():
    with override_settings(CACHES={"default": {"BACKEND": LOCAL, "LOCATION": "its own"}}):
        shared_rates.cache_clear()
        shared_rates().wait(CALLER, 1, 60)
        assert shared_rates().wait(CALLER, 1, 60) is not None
        caches["default"].clear()
        assert shared_rates().wait(CALLER, 1, 60) is None
    shared_rates.cache_clear()


def test_of_very_many_keys_those_of_the_latest_requests_are_counted():
    often = 0
    for n in range(KEYS_MAX + 1):
        if n % 1_000 == 0:
            often += process_rates().wait(CALLER, 5, 60) is None
        process_rates().wait(f"stranger-{n}", 5, 60)
    assert often == 5
