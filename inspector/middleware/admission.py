"""Admits requests to Django: a few at once, so that threads and connections stay few.

Django's ASGI handler starts a thread for each request at once, and the thread opens a connection to
the database. Where many writers waited for one conversation, they held all connections, and nothing
else was answered. A request that waits here has neither. All methods belong to one event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from time import perf_counter

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import parse_cookie

from chatmemory.api.errors import Problem, database_problem
from chatmemory.converters import memory_id_at
from chatmemory.services.database_errors import Outage
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.refusals import send_problem
from inspector.observability.logs import log_request

WAITING_FOR_ONE = 16
WAITING_FOR_ANY = 256
SLOW_ANSWERS = 4
SLOW_SECONDS = 2.0

_READING = ("GET", "HEAD", "OPTIONS")
_WRITTEN = re.compile(r"/(?:c|api/v1/memories|api/v1/store)/([^/]+)/")
# A simulation of a page is kept, to be found at its URL.
_SIMULATED = re.compile(r"/(?:c/[^/]+/verdict|api/v1/memories/[^/]+/simulate)/")
_LONG_WORK = {
    "changes of several conversations": re.compile(r"/(?:bulk|lab/adopt)/"),
    "measurements": re.compile(r"/(?:lab|lab/file|lab/compare|api/v1/recall)/"),
}
_SLOW = Problem(
    429,
    "Too many requests",
    f"{SLOW_ANSWERS} answers are still being sent to you: read them, or close their connections",
    headers={"Retry-After": "2"},
)
_ALWAYS = frozenset({"/healthz"})  # asks no database, and tells that the process lives


class Admission:
    """An ASGI application that lets a request in once it has arrived and a place is free.

    It answers 503 with Retry-After at once to a request that would make a queue too long. No part
    of an answer holds a place or a connection while it is sent, so that slow readers hold none; and
    who reads several answers slowly is told 429 until one of them has ended.
    """

    def __init__(self, application: Application, places: Places) -> None:
        self._application = application
        self._places = places
        self._slow_answers: Counter[str] = Counter()  # by client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._application(scope, receive, send)
            return
        reader = AnswerReader(self._slow_answers, clients_of(scope))
        if reader.has_too_many:
            await send_problem(scope, send, _SLOW, unread=receive)
            return
        visit = _Visit(self._places, job_of(scope), receive, reader.timed(send))
        started = perf_counter()
        async with ThreadSensitiveContext():  # the thread of this request, in Django too
            try:
                await self._application(scope, visit.receive, visit.send)
            finally:
                reader.end()
                await visit.end()
        if visit.refusal is not None:
            busy = Outage("busy", f"{visit.refusal}: try again in a moment")
            await send_problem(scope, send, database_problem(busy))
            log_request(scope["method"], "refused", 503, perf_counter() - started, actor="")


class _Visit:
    """A request from the end of its body to the end of its answer."""

    def __init__(self, places: Places, job: Job, receive: Receive, send: Send) -> None:
        self._places = places
        self._job = job
        self._receive = receive
        self._send = send
        self._held: Job | None = None
        self._is_made = False
        self.refusal: QueueFull | None = None

    async def receive(self) -> Message:
        """Hand on what arrives, the end of the body once there is a place."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            try:
                await self._places.take(self._job)
            except QueueFull as refusal:
                self.refusal = refusal
                return {"type": "http.disconnect"}
            self._held = self._job
        return message

    async def send(self, message: Message) -> None:
        """Hand on the answer, without a place. One whose length is known is complete; the parts of
        another one are read while it is sent, each with a place of its own.
        """
        is_start = message["type"] == "http.response.start"
        if is_start:
            self._is_made = _has_length(message)
        await self.end()
        await self._send(message)
        if message.get("more_body", is_start) and not self._is_made:
            await self._places.take(Job(), again=True)
            self._held = Job()

    async def end(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            try:
                await sync_to_async(close_old_connections)()
            finally:
                self._places.leave(held)


class QueueFull(Exception):
    """Too many requests are waiting, or one has waited too long. The text says for what."""


@dataclass(frozen=True)
class Job:
    """What a request wants: to read, or to write. `memory_id` is the one conversation that it
    writes, None if it writes none, several, or a new one. `long_work` names what takes long or may
    wait for any conversation.
    """

    is_write: bool = False
    memory_id: str | None = None
    long_work: str = ""

    @property
    def takes_turns(self) -> bool:
        """Whether one request with this job is worked on at a time."""
        return self.memory_id is not None or bool(self.long_work)


class Places:
    """`most` places. One is kept for reads. Writers of the same conversation take turns: they would
    wait for one another in the database, and nobody else would get a place. So does long work.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._working: list[Job] = []
        self._queue: dict[asyncio.Future[None], Job] = {}

    async def take(self, job: Job, again: bool = False) -> None:
        """Wait for a place, up to the given seconds; `leave` gives it back. Raises QueueFull.

        Who has begun an answer, and takes a place `again` to go on with it, is never refused.
        """
        if self._has_room(job):
            self._working.append(job)
            return
        if not again:
            self._check_queue(job)
        turn = asyncio.get_running_loop().create_future()
        self._queue[turn] = job
        try:
            async with asyncio.timeout(None if again else self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.leave(job)  # its turn came as it gave up
            if isinstance(error, TimeoutError):
                raise QueueFull(f"no turn came in {self._seconds:g} seconds") from None
            raise
        finally:
            self._queue.pop(turn, None)

    def leave(self, job: Job) -> None:
        """Give a place back, and give it to the first in the queue that may have it."""
        self._working.remove(job)
        for turn, waiting in list(self._queue.items()):
            if not turn.done() and self._has_room(waiting):
                self._working.append(waiting)
                turn.set_result(None)

    def _has_room(self, job: Job) -> bool:
        if not job.is_write:
            return len(self._working) < self._most
        writes = [other for other in self._working if other.is_write]
        is_anothers_turn = job.takes_turns and job in writes
        return (
            len(self._working) < self._most
            and len(writes) < self._most - 1
            and not is_anothers_turn
        )

    def _check_queue(self, job: Job) -> None:
        waiting = list(self._queue.values())
        if job.takes_turns and waiting.count(job) >= WAITING_FOR_ONE:
            others = job.long_work or "changes of this conversation"
            raise QueueFull(f"{WAITING_FOR_ONE} other {others} are waiting")
        if sum(other.is_write == job.is_write for other in waiting) >= WAITING_FOR_ANY:
            raise QueueFull(f"{WAITING_FOR_ANY} other requests are waiting")


def job_of(scope: Scope) -> Job:
    """Return what a request wants, by its method and path."""
    path = scope["path"]
    if scope["method"] in _READING or _SIMULATED.fullmatch(path):
        return Job()
    written = _WRITTEN.match(path)
    works = (name for name, paths in _LONG_WORK.items() if paths.fullmatch(path))
    try:
        memory_id = memory_id_at(written[1]) if written else None
    except ValueError:  # Django answers 404
        memory_id = None
    return Job(is_write=True, memory_id=memory_id, long_work=next(works, ""))


class AnswerReader:
    """Who reads one answer. Only the time counts in which the server waits for it."""

    def __init__(self, counts: Counter[str], clients: frozenset[str]) -> None:
        self._counts = counts
        self._clients = clients
        self._left = SLOW_SECONDS
        self._is_slow = False

    @property
    def has_too_many(self) -> bool:
        return any(self._counts[client] >= SLOW_ANSWERS for client in self._clients)

    def timed(self, send: Send) -> Send:
        """Return what sends the answer, and notes how long its client lets it wait."""

        async def sending(message: Message) -> None:
            if self._is_slow:
                await send(message)
                return
            loop = asyncio.get_running_loop()
            began, timer = loop.time(), loop.call_later(self._left, self._count)
            try:
                await send(message)
            finally:
                timer.cancel()
                self._left -= loop.time() - began

        return sending

    def end(self) -> None:
        if self._is_slow:
            self._counts.subtract(self._clients)
            for client in self._clients:
                if not self._counts[client]:
                    del self._counts[client]

    def _count(self) -> None:
        self._is_slow = True
        self._counts.update(self._clients)


def clients_of(scope: Scope) -> frozenset[str]:
    """Return by what a client is known: its token, its session or both, else its address.

    What it makes up beside a valid one is no way around the count, as both are counted.
    """
    address, _ = scope.get("client") or ("", 0)
    headers = [(name, value.decode("latin1")) for name, value in scope.get("headers", ())]
    given = [value.split() for name, value in headers if name == b"authorization"]
    cookies = parse_cookie("; ".join(value for name, value in headers if name == b"cookie"))
    session = cookies.get(settings.SESSION_COOKIE_NAME)
    known = [f"token {words[-1]}" for words in given if words]
    known += [f"session {session}"] if session else []
    return frozenset(known or [f"address {address}"])


def _has_length(message: Message) -> bool:
    return any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
