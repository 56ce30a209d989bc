"""Admits requests to Django: a few at once, so that threads and connections stay few.

Django's ASGI handler starts a thread for each request at once, and the thread opens a connection to
the database. Where many writers waited for one conversation, they held all connections, and nothing
else was answered.
"""

from __future__ import annotations

import re
from time import perf_counter

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from chatmemory.api.problems import Problem, database_problem
from chatmemory.converters import memory_id_at
from chatmemory.services.database_errors import Outage
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.places import Crowded, Errand, Places
from inspector.middleware.refusals import send_problem
from inspector.middleware.slow_readers import SLOW_ANSWERS, SlowReaders
from inspector.observability.requests import log_request

_READING = ("GET", "HEAD", "OPTIONS")
_WRITTEN = re.compile(r"/(?:c|api/v1/memories|api/v1/store)/([^/]+)/")
# A simulation of a page is kept, to be found at its URL.
_SIMULATED = re.compile(r"/(?:c/[^/]+/verdict|api/v1/memories/[^/]+/simulate)/")
_LONG_WORK = {
    "changes of several conversations": re.compile(r"/(?:bulk|lab/adopt)/"),
    "measurements": re.compile(r"/(?:lab|lab/file|lab/compare|api/v1/recall)/"),
}
_READ = Errand()
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
        self._slow_readers = SlowReaders()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._application(scope, receive, send)
            return
        reader = self._slow_readers.reader(scope)
        if reader.has_too_many:
            await send_problem(scope, send, _SLOW, unread=receive)
            return
        visit = _Visit(self._places, errand_of(scope), receive, reader.timed(send))
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

    def __init__(self, places: Places, errand: Errand, receive: Receive, send: Send) -> None:
        self._places = places
        self._errand = errand
        self._receive = receive
        self._send = send
        self._held: Errand | None = None
        self._is_made = False
        self.refusal: Crowded | None = None

    async def receive(self) -> Message:
        """Hand on what arrives, the end of the body once there is a place."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            try:
                await self._places.take(self._errand)
            except Crowded as refusal:
                self.refusal = refusal
                return {"type": "http.disconnect"}
            self._held = self._errand
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
            await self._places.take(_READ, again=True)
            self._held = _READ

    async def end(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            try:
                await sync_to_async(close_old_connections)()
            finally:
                self._places.leave(held)


def errand_of(scope: Scope) -> Errand:
    """Return what a request wants, by its method and path."""
    path = scope["path"]
    if scope["method"] in _READING or _SIMULATED.fullmatch(path):
        return Errand()
    written = _WRITTEN.match(path)
    works = (name for name, paths in _LONG_WORK.items() if paths.fullmatch(path))
    try:
        memory_id = memory_id_at(written[1]) if written else None
    except ValueError:  # Django answers 404
        memory_id = None
    return Errand(is_write=True, memory_id=memory_id, long_work=next(works, ""))


def _has_length(message: Message) -> bool:
    return any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
