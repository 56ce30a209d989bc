"""The queue in front of Django: reads and other conversations pass writers that wait."""

from __future__ import annotations

import asyncio

import pytest

from inspector.middleware.admission import (
    WAITING_FOR_ANY,
    WAITING_FOR_ONE,
    Job,
    Places,
    QueueFull,
    job_of,
)

READ, HOT, OTHER = Job(), Job(True, "hot"), Job(True, "other")
NEW = Job(is_write=True)
SEVERAL = Job(is_write=True, long_work="changes of several conversations")
MEASURING = Job(is_write=True, long_work="measurements")
SECONDS = 10


async def tasks(places: Places, job: Job, number: int) -> list[asyncio.Task[None]]:
    """Requests that wait for a place each."""
    waiting = [asyncio.create_task(places.take(job)) for _ in range(number)]
    await asyncio.sleep(0)
    return waiting


async def end(waiting: list[asyncio.Task[None]]) -> None:
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def test_writers_of_one_conversation_take_turns_and_others_pass_them():
    async def ask():
        places = Places(4, SECONDS)
        await places.take(HOT)
        (second, third) = await tasks(places, HOT, 2)
        await places.take(OTHER)
        await places.take(READ)
        assert not second.done()
        places.leave(HOT)
        await second
        assert not third.done()
        places.leave(HOT)
        await third

    asyncio.run(ask())


def test_one_place_is_kept_for_reads():
    async def ask():
        places = Places(3, SECONDS)
        await places.take(HOT)
        await places.take(OTHER)
        (writer,) = await tasks(places, NEW, 1)
        await places.take(READ)
        (reader,) = await tasks(places, READ, 1)
        places.leave(READ)
        await reader
        assert not writer.done()
        await end([writer])

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("job", "most"),
    [(HOT, WAITING_FOR_ONE), (READ, WAITING_FOR_ANY)],
    ids=["one", "any"],
)
def test_a_long_queue_refuses_at_once(job, most):
    async def ask():
        places = Places(2, SECONDS)
        for held in (HOT, READ):
            await places.take(held)
        waiting = await tasks(places, job, most)
        with pytest.raises(QueueFull, match=f"{most} other"):
            await places.take(job)
        await end(waiting)
        (next_,) = await tasks(places, job, 1)  # who gave up left the queue
        places.leave(HOT)
        await next_

    asyncio.run(ask())


def test_a_long_queue_of_writers_refuses_no_reader():
    async def ask():
        places = Places(2, SECONDS)
        for held in (HOT, READ):
            await places.take(held)
        waiting = await tasks(places, NEW, WAITING_FOR_ANY)
        (reader,) = await tasks(places, READ, 1)
        places.leave(READ)
        await reader
        await end(waiting)

    asyncio.run(ask())


def test_who_writes_no_conversation_that_is_there_waits_for_no_other():
    async def ask():
        places = Places(3, SECONDS)
        assert all(each.done() for each in await tasks(places, NEW, 2))

    asyncio.run(ask())


def test_long_work_takes_one_place():
    async def ask():
        places = Places(4, SECONDS)
        await places.take(SEVERAL)
        await places.take(HOT)
        waiting = await tasks(places, SEVERAL, WAITING_FOR_ONE)
        with pytest.raises(QueueFull, match="16 other changes of several conversations"):
            await places.take(SEVERAL)
        await places.take(OTHER)
        places.leave(SEVERAL)
        await waiting[0]
        await end(waiting[1:])

    asyncio.run(ask())


def test_who_waits_too_long_is_refused():
    async def ask():
        places = Places(2, 0)
        await places.take(HOT)
        with pytest.raises(QueueFull, match="no turn came in 0 seconds"):
            await places.take(HOT)
        places.leave(HOT)
        await places.take(HOT)

    asyncio.run(ask())


def test_a_turn_that_comes_as_its_request_gives_up_goes_to_the_next():
    async def ask():
        places = Places(2, SECONDS)
        await places.take(HOT)
        first, second = await tasks(places, HOT, 2)
        places.leave(HOT)
        first.cancel()
        await second

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("method", "path", "job"),
    [
        ("GET", "/c/a~2Fb/", Job()),
        ("POST", "/c/a~2Fb/add/", Job(True, "a/b")),
        ("PATCH", "/api/v1/memories/a~2fb/", Job(True, "a/b")),
        ("PUT", "/api/v1/store/a/", Job(True, "a")),
        ("POST", "/api/v1/memories/a/simulate/", Job()),
        ("POST", "/api/v1/memories/", Job(True)),
        ("POST", "/api/v1/memories/~zz/messages/", Job(True)),
        ("POST", "/c/a/simulate/", Job(True, "a")),
        ("POST", "/c/a/verdict/", Job()),
        ("POST", "/import/", Job(True)),
        ("POST", "/bulk/", SEVERAL),
        ("POST", "/lab/adopt/", SEVERAL),
        ("POST", "/lab/", MEASURING),
        ("POST", "/api/v1/recall/", MEASURING),
    ],
)
def test_the_errand_of_a_request(method, path, job):
    assert job_of({"method": method, "path": path}) == job
