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

from chatmemory.api.problems import database_problem
from chatmemory.converters import memory_id_at
from chatmemory.services.database_errors import Outage
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.places import Crowded, Errand, Places
from inspector.middleware.refusals import send_problem
from inspector.observability.requests import log_request

_READING = ("GET", "HEAD", "OPTIONS")
_WRITTEN = re.compile(r"/(?:c|api/v1/memories|api/v1/store)/([^/]+)/")
# A simulation of a page is kept, to be found at its URL.
_SIMULATED = re.compile(r"/(?:c/[^/]+/verdict|api/v1/memories/[^/]+/simulate)/")
_LONG_WORK = {
    "changes of several conversations": re.compile(r"/(?:bulk|lab/adopt)/"),
    "measurements": re.compile(r"/(?:lab|lab/file|lab/compare|api/v1/recall)/"),
}
_ALWAYS = frozenset({"/healthz"})  # asks no database, and tells that the process lives


class Admission:
    """An ASGI application that lets a request in once it has arrived and a place is free.

    It answers 503 with Retry-After at once to a request that would make a queue too long. A thread
    gives its connection back before the answer is sent, so that slow readers hold none.
    """

    def __init__(self, application: Application, places: Places) -> None:
        self._application = application
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _ALWAYS:
            await self._application(scope, receive, send)
            return
        visit = _Visit(self._places, errand_of(scope), receive, send)
        started = perf_counter()
        async with ThreadSensitiveContext():  # the thread of this request, in Django too
            try:
                await self._application(scope, visit.receive, visit.send)
            finally:
                await visit.end()
        if visit.refusal is not None:
            busy = Outage("busy", f"{visit.refusal}: try again in a moment")
            await send_problem(scope, send, database_problem(busy))
            log_request(scope["method"], "refused", 503, perf_counter() - started, actor="")


class _Visit:
    """A request from the end of its body to the beginning of its answer."""

    def __init__(self, places: Places, errand: Errand, receive: Receive, send: Send) -> None:
        self._places = places
        self._errand = errand
        self._receive = receive
        self._send = send
        self._has_place = False
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
            self._has_place = True
        return message

    async def send(self, message: Message) -> None:
        """Hand on the answer. One whose length is known is complete, and needs no place."""
        if message["type"] == "http.response.start" and _has_length(message):
            await self.end()
        await self._send(message)

    async def end(self) -> None:
        if self._has_place:
            self._has_place = False
            try:
                await sync_to_async(close_old_connections)()
            finally:
                self._places.leave(self._errand)


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
