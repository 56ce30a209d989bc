"""The live streams: an ASGI application beside Django that sends server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html

Django's ASGI handler would keep a thread for every open stream. These streams need none: they ask
the database in a thread only when they open and once a minute, to check the reader's permission.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch

from chatmemory.live import ALL_CONVERSATIONS, Follower, Watcher
from chatmemory.services.database_errors import RETRY_SECONDS
from inspector.asgi import Receive, Scope, Send
from inspector.live.readers import (
    Audience,
    Credentials,
    StreamReader,
    authorize,
    is_one_too_many,
)
from inspector.mount import path_in, route_at
from inspector.observability.logs import choose_request_id, log_request, request_id
from inspector.observability.metrics import stream_open, stream_waiting

HEARTBEAT_SECONDS = 15
RECONNECT_MILLISECONDS = 1000
_NAMES = frozenset({"inspector:live", "inspector:live-overview"})


class Heartbeats:
    """Wakes each watcher every 15 seconds, some of them each second.

    One task serves all: a timer for each wait takes a third of the time that a step takes to reach
    a thousand readers.
    """

    def __init__(self) -> None:
        self._turns: list[set[Watcher]] = [set() for _ in range(HEARTBEAT_SECONDS)]
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def waking(self, watcher: Watcher) -> Iterator[None]:
        """Wake a watcher again and again during a block."""
        turn = min(self._turns, key=len)
        turn.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            turn.discard(watcher)
            if not any(self._turns) and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _beat(self) -> None:
        for turn in cycle(self._turns):
            await asyncio.sleep(HEARTBEAT_SECONDS / len(self._turns))
            for watcher in turn:
                watcher.wake()


_follower = Follower()
_audience = Audience()
_heartbeats = Heartbeats()


@dataclass(frozen=True)
class _Request:
    """A request for a stream: the status to answer with, headers for the answer, and with 200 the
    reader.
    """

    status: int
    headers: dict[str, str]
    reader: StreamReader | None = None


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends `event: step` with the newest step number whenever a conversation has new steps, until
    the reader disconnects, or with `event: deleted` until the conversation is deleted.

    A reader who reconnects with Last-Event-ID is told at once about steps it missed, and of the
    newest one if it has more than there are. Answers like Django to a host that is not the site's
    and to plain HTTP, 405 for any method but GET, 429 or 503 if too many streams are open, and what
    `authorize` says.
    """
    started = asyncio.get_running_loop().time()
    asked_id = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    request_id.set(choose_request_id(asked_id))
    request = await _judge(scope)
    try:
        if request.reader is not None:
            await _follow(request.reader, request.headers, scope, receive, send)
        else:
            await _send_refusal(send, request.status, request.headers)
    finally:
        seconds = asyncio.get_running_loop().time() - started
        log_request(scope["method"], "live", request.status, seconds, actor="")


def close_streams() -> None:
    """Ends every open stream of this process. Browsers reconnect by themselves."""
    _audience.end_all()


async def send_steps(watcher: Watcher, sent: int, send: Send) -> None:
    """Send the steps after `sent`, and a heartbeat when the watcher wakes without one, until it
    has left.
    """
    while not watcher.has_left:
        await watcher.later_than(sent)
        if watcher.has_left:
            return
        if watcher.step > sent:
            sent = watcher.step
            await _send_step(send, sent)
        else:
            await _send_heartbeat(send)


async def _judge(scope: Scope) -> _Request:
    status, headers = _status_and_headers(scope)
    if status != 200:
        return _Request(status, headers)
    if scope["method"] != "GET":
        return _Request(405, headers)
    credentials, memory_id = Credentials.of(dict(scope["headers"])), requested_memory(scope)
    status, caller = await authorize(credentials, memory_id)
    status = _audience.refusal(caller) or status
    address, *_ = scope.get("client") or ("",)
    if status == 401 and await is_one_too_many(address):
        status = 429
    return _Request(
        status, headers, StreamReader(caller, credentials, memory_id) if status == 200 else None
    )


async def _follow(
    reader: StreamReader, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
) -> None:
    disconnected = asyncio.create_task(_disconnect(receive))
    with _audience.including(reader, disconnected):
        async with _follower.watching(reader.memory_id, _requested_making(scope)) as watcher:
            disconnected.add_done_callback(lambda _: watcher.leave())
            with stream_open(), _heartbeats.waking(watcher):
                await _send_start(send, headers)
                seen = _last_step_seen(scope)
                await send_steps(watcher, seen if seen <= watcher.step else 0, send)
                if watcher.is_deleted:
                    await _send_deletion(send)
            await _send_end(send)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def is_stream(scope: Scope) -> bool:
    """Whether a request is for a live stream."""
    return _match(scope) is not None


def requested_memory(scope: Scope) -> str:
    """Return the requested conversation's id, or ALL_CONVERSATIONS."""
    found = _match(scope)
    return ALL_CONVERSATIONS if found is None else found.kwargs.get("memory_id", ALL_CONVERSATIONS)


def _match(scope: Scope) -> ResolverMatch | None:
    """Return the route of a live stream. Only paths that end like one are looked up."""
    if scope["type"] != "http" or not scope["path"].endswith("/live/"):
        return None
    match = route_at(path_in(scope))
    return match if match and match.view_name in _NAMES else None


def _last_step_seen(scope: Scope) -> int:
    """Return the step that the reader has: from Last-Event-ID, which a browser sends when it
    reconnects, else from `?after=`, else 0.
    """
    header = dict(scope["headers"]).get(b"last-event-id", b"")
    if header.isdigit() and len(header) <= 18:
        return int(header)
    return _number(scope, b"after") or 0


def _requested_making(scope: Scope) -> int | None:
    """Return the moment when the reader's conversation was made, from `?made=`: the id may be that
    of another one by now.
    """
    return _number(scope, b"made")


def _number(scope: Scope, name: bytes) -> int | None:
    found = re.search(rb"(?:^|&)%b=([0-9]{1,18})(?:&|$)" % name, scope["query_string"])
    return int(found[1]) if found else None


def _status_and_headers(scope: Scope) -> tuple[int, dict[str, str]]:
    """Return what Django's security middleware answers: 200 and the headers that belong on every
    answer, 301 and the address under HTTPS, or 400 for a host that is not the site's.
    """
    request = ASGIRequest(scope, BytesIO())
    try:
        answer = SecurityMiddleware(_answer_host)(request)
    except DisallowedHost:
        answer = HttpResponse(status=400)
    headers = {name.lower(): value for name, value in answer.items()}  # type: ignore[union-attr]
    return answer.status_code, headers  # type: ignore[union-attr]


def _answer_host(request: HttpRequest) -> HttpResponse:
    request.get_host()
    return HttpResponse()


async def _send_start(send: Send, headers: Mapping[str, str]) -> None:
    """Send the headers, and the time after which a reader reconnects."""
    own = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
    await _send_head(send, 200, {**headers, **own})
    await _send(send, f"retry: {RECONNECT_MILLISECONDS}\n\n")


async def _send_step(send: Send, step: int) -> None:
    await _send(send, f"event: step\nid: {step}\ndata: {step}\n\n")


async def _send_deletion(send: Send) -> None:
    """Send the last event of a stream: the conversation was deleted."""
    await _send(send, "event: deleted\ndata: deleted\n\n")


async def _send_heartbeat(send: Send) -> None:
    """Send a comment, which readers ignore: proxies close a connection that stays silent."""
    await _send(send, ": heartbeat\n\n")


async def _send_end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_refusal(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send a whole response that has no body. The connection ends with it, because a body of the
    request may still arrive.
    """
    own = {"content-type": "text/plain", "connection": "close"}
    if status in (429, 503):
        own["retry-after"] = str(RETRY_SECONDS)
    await _send_head(send, status, {**headers, **own})
    await _send_end(send)


async def _send_head(send: Send, status: int, headers: Mapping[str, str]) -> None:
    every = {**headers, "cache-control": "no-store", "x-request-id": request_id.get()}
    encoded = [(name.encode(), value.encode()) for name, value in every.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def _send(send: Send, text: str) -> None:
    with stream_waiting():
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
