"""Limits the number of requests that Django handles at a time, so that threads and connections stay
few.

Django's ASGI handler starts a thread for each request at once, and the thread opens a database
connection. Without a limit, writers waiting for one conversation could occupy all connections. A
request that waits here has neither a thread nor a connection.

All methods of a `Places` object except `beside` must run in the same event loop. `beside` runs in
another thread.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Semaphore
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from time import perf_counter
from typing import NamedTuple
from weakref import WeakValueDictionary

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import parse_cookie

from chatmemory.api.errors import database_problem
from chatmemory.converters import memory_id_at
from chatmemory.database_errors import Outage
from chatmemory.patterns import declared_pattern
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.refusals import send_problem
from inspector.shell.load import load_changed
from inspector.shell.logs import log_request

WAITING_FOR_ONE = 16
WAITING_FOR_ANY = 256
WAITING_OF_CALLER = 64
ANSWERS_OF_CALLER = 4

_READING = ("GET", "HEAD", "OPTIONS")
_WRITTEN = declared_pattern(r"/(?:c|api/v1/memories|api/v1/store)/([^/]+)/")
# A page's simulation is stored, so that its URL finds it.
_SIMULATED = declared_pattern(r"/(?:c/[^/]+/verdict|api/v1/memories/[^/]+/simulate)/")
_LONG_WORK = {
    "changes of several conversations": declared_pattern(r"/(?:bulk|lab/adopt)/"),
    "measurements": declared_pattern(r"/(?:lab|api/v1/recall)/"),
}
_ALWAYS = frozenset({"/healthz"})  # uses no database, and tells that the process is alive


class Admission:
    """An ASGI application that passes a request on as soon as its body has arrived and a place is
    free. A place is the permission to handle one request.

    - If too many requests wait already, a new request gets 503 with Retry-After at once. A request
      that has waited too long gets 503, too.
    - A request gives its place and its database connection back while its response is sent. So
      clients that read slowly do not block other requests.
    - A caller gets at most four responses to read requests, such as GET, at a time. Further read
      requests of the caller wait.
    """

    def __init__(self, application: Application, places: Places) -> None:
        self._application = application
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._application(scope, receive, send)
            return
        visit = _Visit(self._places, job_of(scope), callers_of(scope), receive, send)
        started = perf_counter()
        async with ThreadSensitiveContext():  # the request's thread, in Django, too
            try:
                await self._application(scope, visit.receive, visit.send)
            finally:
                await visit.end()
        if visit.refusal is not None:
            busy = Outage("busy", str(visit.refusal))
            await send_problem(scope, send, database_problem(busy))
            log_request(scope["method"], "refused", 503, perf_counter() - started, actor="")


class _Visit:
    """A request from the end of its body to the end of its answer."""

    def __init__(
        self, places: Places, job: Job, callers: frozenset[str], receive: Receive, send: Send
    ) -> None:
        self._places = places
        self._job = job
        self._callers = callers
        self._receive = receive
        self._send = send
        self._turn = AsyncExitStack()
        self._place = AsyncExitStack()
        self._is_made = False
        self.refusal: QueueFull | None = None

    async def receive(self) -> Message:
        """Pass on the parts of the body. The last part waits for a place."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            load_changed.send(sender=None, waiting=1, working=0)
            try:
                if not self._job.is_write:
                    self._turn = await self._places.begin_answer(self._callers)
                self._hold(await self._places.take(self._job))
            except QueueFull as refusal:
                self.refusal = refusal
                return {"type": "http.disconnect"}
            finally:
                load_changed.send(sender=None, waiting=-1, working=0)
        return message

    async def send(self, message: Message) -> None:
        """Pass on a part of the response without holding a place.

        A response of known length is complete already. The parts of any other response are made
        while the response is sent. So after each part, wait for a place to make the next part.
        """
        is_start = message["type"] == "http.response.start"
        if is_start:
            self._is_made = _has_length(message)
            if _is_stream(message):  # a stream goes on for hours, and has limits of its own
                await self._turn.aclose()
        await self._place.aclose()
        await self._send(message)
        if message.get("more_body", is_start) and not self._is_made:
            self._hold(await self._places.take_again())

    def _hold(self, place: AsyncExitStack) -> None:
        load_changed.send(sender=None, waiting=0, working=1)
        place.callback(load_changed.send, sender=None, waiting=0, working=-1)
        place.push_async_callback(sync_to_async(close_old_connections))
        self._place = place

    async def end(self) -> None:
        await self._place.aclose()
        await self._turn.aclose()


class QueueFull(Exception):
    """Raised if too many requests wait already, or if a request has waited too long. The text says
    which of these is the reason.
    """


class Job(NamedTuple):
    """The work that a request needs. `is_write` is False for reads and simulations.

    - `kind` says what the request does: changes of one conversation, changes of several
      conversations, or measurements. It is "" for all other work.
    - `memory_id` is the ID of the conversation that the request changes; "" unless the request
      changes one conversation.

    Jobs with a `kind` are done one after the other if they have the same `kind` and `memory_id`.
    Jobs without a `kind` may be done at the same time.
    """

    is_write: bool = False
    kind: str = ""
    memory_id: str = ""


class Places:
    """Permits at most `most` requests to be handled at a time. A place is the permission to handle
    one request. One place is reserved for reads.

    Requests that change the same conversation are handled one at a time. Otherwise they would
    occupy places while they wait for each other in the database. Changes of several conversations
    are handled one at a time, too, and so are measurements. `seconds` is the longest time that a
    new request waits for a place.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._seconds = seconds
        self._free = Semaphore(most)
        self._free_for_writes = Semaphore(most - 1)
        self._turns: WeakValueDictionary[Job, Semaphore] = WeakValueDictionary()
        self._answers: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()
        self._waiting: list[Job] = []
        self._waiting_callers: Counter[str] = Counter()

    async def begin_answer(self, callers: frozenset[str]) -> AsyncExitStack:
        """Wait until the caller has fewer than four responses in progress. Raises QueueFull.

        Close the returned object when the new response has been sent. `callers` are the keys that
        identify the caller (see `callers_of`). The limit exists because a large response stays in
        the server's RAM until the client has read it.
        """
        if any(self._waiting_callers[each] >= WAITING_OF_CALLER for each in callers):
            raise QueueFull(
                f"{WAITING_OF_CALLER} of your requests are already waiting, the most for one "
                "caller: wait for their responses before you send more"
            )
        # In a fixed order: two requests with the same two names could wait for each other otherwise
        gates = [
            self._answers.setdefault(each, Semaphore(ANSWERS_OF_CALLER)) for each in sorted(callers)
        ]
        self._waiting_callers.update(callers)
        try:
            async with asyncio.timeout(self._seconds):
                return await _passed(gates)
        except TimeoutError:
            raise QueueFull(
                f"you are receiving {ANSWERS_OF_CALLER} responses, the most at a time, and none "
                f"ended within {self._seconds:g} seconds: read these responses to their end, or "
                "close their connections"
            ) from None
        finally:
            self._waiting_callers -= Counter(callers)

    async def take(self, job: Job) -> AsyncExitStack:
        """Wait for a free place, and return an object that gives the place back when it is closed.
        Raises QueueFull.
        """
        gates = self._gates(job)
        if any(gate.locked() for gate in gates):
            self._check_queue(job)
        self._waiting.append(job)
        try:
            async with asyncio.timeout(self._seconds):
                return await _passed(gates)
        except TimeoutError:
            raise QueueFull(
                f"the request waited {self._seconds:g} seconds for other requests, and was not "
                "carried out: send the request again later"
            ) from None
        finally:
            self._waiting.remove(job)

    async def take_again(self) -> AsyncExitStack:
        """Wait for a place, so that a response that has begun can continue. The waiting has no time
        limit. Close the returned object to give the place back.
        """
        return await _passed([self._free])

    @contextmanager
    def beside(self, loop: AbstractEventLoop) -> Iterator[None]:
        """Wait for a place, and hold this place within the context. This method is for work in a
        thread outside the event loop. `loop` is the event loop in which all other methods run.

        The place that is reserved for reads is never taken. Raises QueueFull.
        """
        taking = asyncio.run_coroutine_threadsafe(self.take(Job(is_write=True)), loop)
        place = taking.result()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(place.aclose(), loop)

    def _gates(self, job: Job) -> list[Semaphore]:
        """Return the semaphores to acquire, in order. The turn of a job comes first, so that a job
        that waits for its turn occupies no place.
        """
        if not job.is_write:
            return [self._free]
        turn = [self._turns.setdefault(job, Semaphore())] if job.kind else []
        return [*turn, self._free_for_writes, self._free]

    def _check_queue(self, job: Job) -> None:
        if job.kind and self._waiting.count(job) >= WAITING_FOR_ONE:
            raise QueueFull(
                f"{WAITING_FOR_ONE} other {job.kind} are already waiting, the most at a time: "
                "send the request again later"
            )
        if sum(other.is_write == job.is_write for other in self._waiting) >= WAITING_FOR_ANY:
            raise QueueFull(
                f"{WAITING_FOR_ANY} other requests are already waiting, the most at a time: send "
                "the request again later"
            )


async def _passed(gates: list[Semaphore]) -> AsyncExitStack:
    async with AsyncExitStack() as place:
        for gate in gates:
            await place.enter_async_context(gate)
        return place.pop_all()


def job_of(scope: Scope) -> Job:
    """Return the work that a request needs, judged by the method and path of the request."""
    path = scope["path"]
    if scope["method"] in _READING or _SIMULATED.fullmatch(path):
        return Job()
    if written := _WRITTEN.match(path):
        with suppress(ValueError):  # Django answers 404
            return Job(True, "changes of this conversation", memory_id_at(written[1]))
    works = (name for name, paths in _LONG_WORK.items() if paths.fullmatch(path))
    return Job(True, next(works, ""))


def callers_of(scope: Scope) -> frozenset[str]:
    """Return the keys that identify the caller of a request, such as `token abc` and `session xyz`.
    If the request has neither a token nor a session, the only key is the client's address: `address
    10.0.0.1`.

    A request with a token and a session has both keys, and the limits apply to each key. Otherwise
    a client with a session could evade its limit by adding a made-up token to each request.
    """
    address, _ = scope.get("client") or ("", 0)
    headers = [(name, value.decode("latin1")) for name, value in scope.get("headers", ())]
    credentials = [value.split() for name, value in headers if name == b"authorization"]
    cookies = parse_cookie("; ".join(value for name, value in headers if name == b"cookie"))
    session = cookies.get(settings.SESSION_COOKIE_NAME)
    known = [f"token {words[-1]}" for words in credentials if words]
    known += [f"session {session}"] if session else []
    return frozenset(known or [f"address {address}"])


def _has_length(message: Message) -> bool:
    return any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
