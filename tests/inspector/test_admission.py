"""The queue in front of Django: nobody waits for writers of another conversation, for long work, or
for clients that read slowly.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager

import pytest

from inspector.middleware.admission import (
    ANSWERS_OF_CALLER,
    WAITING_FOR_ANY,
    WAITING_FOR_ONE,
    WAITING_OF_CALLER,
    Admission,
    Job,
    Places,
    QueueFull,
    callers_of,
    job_of,
)

CHANGES = "changes of this conversation"
READ, NEW = Job(), Job(True)
HOT, OTHER = Job(True, CHANGES, "hot"), Job(True, CHANGES, "other")
SEVERAL, MEASURING = Job(True, "changes of several conversations"), Job(True, "measurements")
SECONDS = 20


class Asking:
    """Requests for places, in turn. Each is a task that ends when it has its place."""

    def __init__(self, most: int, seconds: float = SECONDS) -> None:
        self.places = Places(most, seconds)
        self.tasks: list[asyncio.Task[AsyncExitStack]] = []

    async def __aenter__(self) -> Asking:
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self.tasks:
            each.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def ask(self, *jobs: Job) -> list[asyncio.Task[AsyncExitStack]]:
        asked = [asyncio.create_task(self.places.take(job)) for job in jobs]
        self.tasks += asked
        await self.settle()
        return asked

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def leave(self, task: asyncio.Task[AsyncExitStack]) -> None:
        await task.result().aclose()
        await self.settle()


def served_of(tasks: list[asyncio.Task[AsyncExitStack]]) -> list[bool]:
    return [each.done() and not each.cancelled() for each in tasks]


@pytest.mark.parametrize(
    ("most", "jobs", "served", "after_the_first"),
    [
        (4, [HOT, HOT, HOT, OTHER, READ], [1, 0, 0, 1, 1], [1, 1, 0, 1, 1]),  # in turns
        (3, [HOT, OTHER, NEW, READ, READ], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1]),  # one is for reads
        (3, [READ, HOT, READ, READ], [1, 1, 1, 0], [1, 1, 1, 1]),
        (3, [NEW, NEW], [1, 1], [1, 1]),
        (5, [SEVERAL, HOT, SEVERAL, MEASURING], [1, 1, 0, 1], [1, 1, 1, 1]),
    ],
)
def test_who_has_a_place_at_once_and_after_the_first_has_left(most, jobs, served, after_the_first):
    async def run():
        async with Asking(most) as asking:
            tasks = await asking.ask(*jobs)
            assert served_of(tasks) == list(map(bool, served))
            await asking.leave(tasks[0])
            assert served_of(tasks) == list(map(bool, after_the_first))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("job", "most", "others"),
    [
        (HOT, WAITING_FOR_ONE, CHANGES),
        (SEVERAL, WAITING_FOR_ONE, SEVERAL.kind),
        (READ, WAITING_FOR_ANY, "requests"),
        (NEW, WAITING_FOR_ANY, "requests"),
    ],
)
def test_a_long_queue_refuses_at_once_but_not_those_of_another(job, most, others):
    async def run():
        async with Asking(2) as asking:
            held = await asking.ask(job, READ)
            waiting = await asking.ask(*[job] * most)
            with pytest.raises(QueueFull, match=f"{most} other {others} are already waiting"):
                await asking.places.take(job)
            (other,) = await asking.ask(NEW if job == READ else READ)
            for each in waiting:
                each.cancel()
            await asking.leave(held[0])
            (next_,) = await asking.ask(job)  # those who gave up left the queue
            assert served_of([other, next_]) == [True, False]
            await asking.leave(held[1])
            assert served_of([next_]) == [True]

    asyncio.run(run())


def test_who_waits_too_long_is_refused_and_keeps_nothing():
    async def run():
        async with Asking(2, 0) as asking:
            (first,) = await asking.ask(HOT)
            with pytest.raises(QueueFull, match="the request waited 0 seconds for other requests"):
                await asking.places.take(HOT)
            await asking.leave(first)
            assert served_of(await asking.ask(HOT)) == [True]

    asyncio.run(run())


def test_a_turn_that_comes_as_its_request_gives_up_goes_to_the_next():
    async def run():
        async with Asking(2) as asking:
            first, second, third = await asking.ask(HOT, HOT, HOT)
            leaving = asyncio.create_task(first.result().aclose())
            await asyncio.sleep(0)
            second.cancel()
            await leaving
            await asking.settle()
            assert served_of([second, third]) == [False, True]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("method", "path", "job"),
    [
        ("GET", "/c/a~2Fb/", READ),
        ("POST", "/c/a~2Fb/add/", Job(True, CHANGES, "a/b")),
        ("PATCH", "/api/v1/memories/a~2fb/", Job(True, CHANGES, "a/b")),
        ("PUT", "/api/v1/store/a/", Job(True, CHANGES, "a")),
        ("POST", "/api/v1/memories/a/simulate/", READ),
        ("POST", "/api/v1/memories/", NEW),
        ("POST", "/api/v1/memories/~zz/messages/", NEW),
        ("POST", "/c/a/simulate/", Job(True, CHANGES, "a")),  # it is kept at a URL
        ("POST", "/c/a/verdict/", READ),
        ("POST", "/import/", NEW),
        ("POST", "/bulk/", SEVERAL),
        ("POST", "/lab/adopt/", SEVERAL),
        ("POST", "/lab/", MEASURING),
        ("POST", "/api/v1/recall/", MEASURING),
    ],
)
def test_what_a_request_wants(method, path, job):
    assert job_of({"method": method, "path": path}) == job


# Clients that read slowly


def answer_of(*headers: tuple[bytes, bytes]) -> list[dict]:
    body = [{"type": "http.response.body", "body": b"part", "more_body": n < 2} for n in range(3)]
    return [{"type": "http.response.start", "status": 200, "headers": list(headers)}, *body]


PARTS, WHOLE = answer_of(), answer_of((b"content-length", b"12"))


class Reader:
    """A client of an application that takes each part of its answer on command."""

    def __init__(self, application: Admission, token: bytes = b"mine", method: str = "GET") -> None:
        self.scope = {"type": "http", "method": method, "path": "/", "client": ("192.0.2.1", 5)}
        self.scope["headers"] = [(b"authorization", b"Bearer " + token)]
        self.taken, self.may_take = [], asyncio.Semaphore(0)
        self.offered = asyncio.Semaphore(0)  # a part that it has not taken yet
        self.task = asyncio.create_task(application(self.scope, self.receive, self.send))

    async def receive(self):
        return {"type": "http.request"}

    async def send(self, message):
        self.offered.release()
        await self.may_take.acquire()
        self.taken.append(message)

    async def all(self) -> list[dict]:
        for _ in range(9):
            self.may_take.release()
        await self.task
        return self.taken


def admitting(answer: list[dict], places: Places) -> Admission:
    async def application(scope, receive, send):
        await receive()
        for message in answer:
            await send(message)

    return Admission(application, places)


@pytest.mark.parametrize("answer", [PARTS, WHOLE], ids=["parts", "whole"])
def test_an_answer_that_is_being_sent_holds_no_place_and_goes_on_when_there_is_one(answer, db):
    async def run():
        places = Places(2, 0)
        slow = []
        for _ in range(3):
            slow.append(Reader(admitting(answer, places)))
            await slow[-1].offered.acquire()
        for each in slow:
            each.may_take.release()
            await each.offered.acquire()
        async with await places.take(READ), await places.take(READ):  # both places are free
            reading = [asyncio.create_task(each.all()) for each in slow]
            if answer is PARTS:
                done, _ = await asyncio.wait(reading, timeout=0.1)
                assert not done
            else:
                await asyncio.wait_for(asyncio.gather(*reading), timeout=10)
        assert await asyncio.gather(*reading) == [answer] * 3

    asyncio.run(run())


def test_a_thread_beside_the_loop_waits_for_a_place_and_leaves_the_one_for_reads():
    async def run():
        places, events = Places(2, SECONDS), asyncio.Queue()
        loop = asyncio.get_running_loop()

        def work():
            with places.beside(loop):
                loop.call_soon_threadsafe(events.put_nowait, "has a place")

        async with await places.take(NEW):  # the only place that is not reserved
            thread = asyncio.create_task(asyncio.to_thread(work))
            await asyncio.wait([thread], timeout=0.1)
            assert events.empty()
            async with await places.take(READ):
                pass
        await thread
        assert await events.get() == "has a place"
        async with await places.take(NEW), await places.take(READ):  # it was given back
            pass

    asyncio.run(run())


async def unread(application: Admission, count: int) -> list[Reader]:
    """Clients that take nothing of answers that have begun."""
    readers = [Reader(application) for _ in range(count)]
    for each in readers:
        await each.offered.acquire()
    return readers


def test_four_answers_to_a_caller_are_in_progress_and_its_other_reads_wait(db):
    async def run():
        application = admitting(WHOLE, Places(2, SECONDS))
        begun = await unread(application, ANSWERS_OF_CALLER)
        fifth = Reader(application)
        assert await Reader(application, b"another").all() == WHOLE
        assert await Reader(application, method="POST").all() == WHOLE
        assert fifth.offered.locked()
        await begun[0].all()
        assert await fifth.all() == WHOLE
        for each in begun[1:]:
            await each.all()

    asyncio.run(run())


def test_a_caller_who_reads_nothing_is_refused_and_keeps_no_turn(db):
    async def run():
        application = admitting(WHOLE, Places(2, 0))
        begun = await unread(application, ANSWERS_OF_CALLER)
        told = await Reader(application).all()  # this application answers, too
        assert [each["status"] for each in told if "status" in each] == [200, 503]
        assert b"read these responses to their end, or close their connections" in b"".join(
            each.get("body", b"") for each in told
        )
        for each in begun:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in begun), return_exceptions=True)
        assert await Reader(application).all() == WHOLE

    asyncio.run(run())


def test_a_caller_has_a_queue_of_its_own(db):
    async def run():
        places = Places(2, SECONDS)
        begun = [await places.begin_answer(frozenset({"a"})) for _ in range(ANSWERS_OF_CALLER)]
        asked = [
            asyncio.create_task(places.begin_answer(frozenset({"a", "b"})))
            for _ in range(WAITING_OF_CALLER)
        ]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="64 of your requests are already waiting"):
            await places.begin_answer(frozenset({"a"}))
        async with await places.begin_answer(frozenset({"c"})):
            pass
        for each in begun:
            await each.aclose()
        for each in asked:
            await (await each).aclose()

    asyncio.run(run())


def test_a_live_stream_is_no_answer_in_progress(db):
    async def run():
        stream = answer_of((b"content-type", b"text/event-stream; charset=utf-8"))
        application = admitting(stream, Places(2, 0))
        begun = await unread(application, ANSWERS_OF_CALLER)
        assert await Reader(application).all() == stream
        for each in begun:
            await each.all()

    asyncio.run(run())


def test_a_client_that_reads_at_once_may_have_many_answers(db):
    async def run():
        application = admitting(PARTS, Places(2, 5))
        many = [Reader(application) for _ in range(3 * ANSWERS_OF_CALLER)]
        assert [await each.all() for each in many] == [PARTS] * len(many)

    asyncio.run(run())


def known_callers(*headers: tuple[bytes, bytes]) -> set[str]:
    return set(callers_of({"client": ("192.0.2.1", 5), "headers": headers}))


def test_a_client_is_known_by_all_that_it_sends():
    assert known_callers() == known_callers((b"authorization", b" ")) == {"address 192.0.2.1"}
    assert known_callers((b"authorization", b"Bearer  a")) == {"token a"}
    both = [(b"cookie", b"sessionid=s"), (b"cookie", b"a=b"), (b"authorization", b"made up")]
    assert known_callers(*both) == {"session s", "token up"}


@contextmanager
def slow_socket(served, path: str) -> Iterator[None]:
    """A connection whose client has sent a request, and reads nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", served.port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.token}"
        connection.sendall(
            f"{head}\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n".encode()
        )
        assert connection.recv(12) == b"HTTP/1.1 200"
        yield


@pytest.mark.own_server(CHATMEMORY_LOCK_SECONDS="1")
def test_slow_readers_of_a_large_window_block_no_other_request(served):
    served.create("m", limit=100)
    for n in range(10):
        served.say("m", f"{n} " + "some words of a message " * 20_000)
    session = served.session()
    for path in ("memories/m/messages/", "store/m/", "memories/m/messages/?at=9"):
        with ExitStack() as opened:
            for _ in range(ANSWERS_OF_CALLER - 1):  # as one client; the server has as many places
                opened.enter_context(slow_socket(served, f"/api/v1/{path}"))
            for _ in range(3):
                assert session.get(f"{served.url}/c/m/", timeout=SECONDS).status_code == 200
