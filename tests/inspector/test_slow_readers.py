"""Who reads slowly holds no place and no connection, and has a few answers at once."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, contextmanager

import pytest

from inspector.middleware import admission
from inspector.middleware.admission import SLOW_ANSWERS, Admission, Job, Places, clients_of

PARTS = [
    {"type": "http.response.start", "status": 200, "headers": []},
    *({"type": "http.response.body", "body": b"part", "more_body": n < 2} for n in range(3)),
]
WHOLE = [
    {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"12")]},
    *({"type": "http.response.body", "body": b"part", "more_body": n < 2} for n in range(3)),
]
SECONDS = 20


class Client:
    """A client of an application with one place, which takes each part when it is told to."""

    def __init__(self, application, token: bytes = b"mine") -> None:
        self.scope = {"type": "http", "method": "GET", "path": "/", "client": ("192.0.2.1", 5)}
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


class WatchedPlaces(Places):
    """Places that tell when a client asks for one to go on with its answer."""

    def __init__(self, most: int) -> None:
        super().__init__(most, 0)
        self.asked_again = asyncio.Semaphore(0)

    async def take(self, job: Job, again: bool = False) -> None:
        if again:
            self.asked_again.release()
        await super().take(job, again)


@pytest.mark.parametrize("answer", [PARTS, WHOLE], ids=["parts", "whole"])
def test_an_answer_that_is_being_sent_holds_no_place(answer, db):
    async def ask():
        places = Places(2, 0)
        application = admitting(answer, places)
        slow = []
        for _ in range(3):
            slow.append(Client(application))
            await slow[-1].offered.acquire()
        for each in slow:
            each.may_take.release()
            await each.offered.acquire()
        for _ in range(2):  # both places are free
            await places.take(Job())
        for _ in range(2):
            places.leave(Job())
        assert [await each.all() for each in slow] == [answer] * 3

    asyncio.run(ask())


def test_who_goes_on_with_an_answer_waits_as_long_as_it_takes(db):
    async def ask():
        places = WatchedPlaces(2)
        reading = Client(admitting(PARTS, places))
        await reading.offered.acquire()
        reading.may_take.release()
        await reading.offered.acquire()
        await places.asked_again.acquire()
        for _ in range(2):
            await places.take(Job())
        reading.may_take.release()
        await places.asked_again.acquire()
        assert len(reading.taken) == 2
        assert reading.offered.locked()
        places.leave(Job())
        assert await reading.all() == PARTS

    asyncio.run(ask())


def test_a_client_reads_a_few_answers_slowly_at_once(db, monkeypatch):
    monkeypatch.setattr(admission, "SLOW_SECONDS", 0)
    count = admission.AnswerReader._count

    async def ask():
        counted = asyncio.Semaphore(0)

        def counting(reader):
            count(reader)
            counted.release()

        monkeypatch.setattr(admission.AnswerReader, "_count", counting)
        application = admitting(WHOLE, Places(2, 0))
        slow = []
        for _ in range(SLOW_ANSWERS):
            slow.append(Client(application))
            await counted.acquire()
        refused = await Client(application).all()
        assert refused[0]["status"] == 429
        assert (b"retry-after", b"2") in refused[0]["headers"]
        assert (await Client(application, b"another").all()) == WHOLE
        await slow[0].all()
        assert (await Client(application).all()) == WHOLE
        for each in slow[1:]:
            await each.all()

    asyncio.run(ask())


def test_a_client_that_reads_at_once_may_have_many_answers(db, monkeypatch):
    monkeypatch.setattr(admission, "SLOW_SECONDS", 1)

    async def ask():
        application = admitting(PARTS, Places(2, 5))
        many = [Client(application) for _ in range(3 * SLOW_ANSWERS)]
        assert [await each.all() for each in many] == [PARTS] * len(many)

    asyncio.run(ask())


def known(*headers: tuple[bytes, bytes]) -> set[str]:
    return set(clients_of({"client": ("192.0.2.1", 5), "headers": headers}))


def test_a_client_is_known_by_all_that_it_sends():
    assert known() == known((b"authorization", b" ")) == {"address 192.0.2.1"}
    assert known((b"authorization", b"Bearer  a")) == {"token a"}
    both = [(b"cookie", b"sessionid=s"), (b"cookie", b"a=b"), (b"authorization", b"made up")]
    assert known(*both) == {"session s", "token up"}


@contextmanager
def slow_socket(served, path: str):
    """A connection whose client has asked, and reads nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", served.port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.token}"
        connection.sendall(
            f"{head}\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n".encode()
        )
        assert connection.recv(12) == b"HTTP/1.1 200"
        yield connection


@pytest.mark.own_server(CHATMEMORY_LOCK_SECONDS="1")
@pytest.mark.parametrize(
    "path",
    ["/api/v1/memories/m/messages/", "/api/v1/store/m/", "/api/v1/memories/m/messages/?at=9"],
)
def test_slow_readers_of_a_large_window_stop_nobody(served, path):
    served.create("m", limit=100)
    for n in range(10):
        served.say("m", f"{n} " + "some words of a message " * 20_000)
    with ExitStack() as opened:
        for _ in range(SLOW_ANSWERS - 1):  # as one client; the server has as many places
            opened.enter_context(slow_socket(served, path))
        session = served.session()
        for _ in range(2):
            opened.enter_context(slow_socket(served, path))
        for _ in range(3):
            assert session.get(f"{served.url}/c/m/", timeout=SECONDS).status_code == 200
