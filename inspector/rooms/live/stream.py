"""Live streams of server-sent events: an ASGI application beside Django.

https://html.spec.whatwg.org/multipage/server-sent-events.html

Django's ASGI handler would use a thread for each open stream. These streams use threads only for
database queries, such as the check of each reader's permission once a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch

from chatmemory.database_errors import RETRY_SECONDS
from chatmemory.patterns import declared_pattern
from inspector.asgi import Receive, Scope, Send
from inspector.mount import path_in, route_at
from inspector.rooms.live.following import ALL_CONVERSATIONS, Follower, Watcher
from inspector.rooms.live.metrics import stream_open, stream_waiting
from inspector.rooms.live.readers import (
    Audience,
    Credentials,
    StreamReader,
    authorize,
    is_one_too_many,
)
from inspector.shell.logs import choose_request_id, log_request, request_id

HEARTBEAT_SECONDS = 15
RECONNECT_MILLISECONDS = 1000
_NAMES = frozenset({"inspector:live", "inspector:live-overview"})


class Heartbeats:
    """Wakes each watcher every 15 seconds, so that its stream sends a heartbeat.

    One task wakes all watchers, in groups. With a timer for each watcher, a step would take a third
    longer to reach a thousand readers.
    """

    def __init__(self) -> None:
        self._turns: list[set[Watcher]] = [set() for _ in range(HEARTBEAT_SECONDS)]
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def waking(self, watcher: Watcher) -> Iterator[None]:
        """Wake a watcher every 15 seconds during the `with` block."""
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


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Send an event whenever something is new, until the reader disconnects:

    - `step`: the conversation has new steps.
    - `kept`: derived data was stored.
    - `deleted`: the conversation was deleted. The stream ends.

    The data of `step` and `kept` is the number of the newest step. In a stream of all
    conversations, the data is a time (see `Newest`).

    A new stream sends the newest step at once, unless the header Last-Event-ID or `?after=` has the
    number of this step. With this number, `?kept=0` asks for the event `kept` at once, if derived
    data is stored.

    If no stream is opened, the response has the status of `authorize`, or one of these:

    - 301 or 400, as in Django, for plain HTTP or a foreign host;
    - 405 for a method other than GET;
    - 429 or 503 for too many streams;
    - 429 for too many requests without a valid session or token.
    """
    started = asyncio.get_running_loop().time()
    sent_id = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    request_id.set(choose_request_id(sent_id))
    status, headers = _status_and_headers(scope)
    reader = None
    if status == 200:
        status, reader = await _judge(scope)
    try:
        if reader is not None:
            await _follow(reader, headers, scope, receive, send)
        else:
            await _refuse(send, status, headers)
    finally:
        seconds = asyncio.get_running_loop().time() - started
        log_request(scope["method"], "live", status, seconds, actor="")


def close_streams() -> None:
    """End every open stream of this process. Browsers reconnect by themselves."""
    _audience.end_all()


async def send_steps(watcher: Watcher, sent: int, send: Send, kept: int = 0) -> None:
    """Send an event whenever the watcher has news, until the reader has gone or the conversation is
    deleted. The data of an event is the number of the newest step.

    - `step`: there are steps after `sent`, the newest step that the reader has.
    - `kept`: there are no new steps, but derived data that is newer than the parameter `kept` (see
      `Newest`).

    If the watcher wakes without news, a comment is sent, so that proxies do not close a silent
    connection.
    """
    while not watcher.has_left:
        await watcher.later_than(sent, kept)
        if watcher.has_left:
            return
        if watcher.step > sent:
            await _send(send, _event("step", watcher.step))
        elif watcher.kept > kept:
            await _send(send, _event("kept", watcher.step))
        else:
            await _send(send, ": heartbeat\n\n")
        sent, kept = watcher.step, watcher.kept


def _event(name: str, step: int) -> str:
    return f"event: {name}\nid: {step}\ndata: {step}\n\n"


async def _judge(scope: Scope) -> tuple[int, StreamReader | None]:
    """Return the HTTP status for a request. With 200, return also the reader."""
    if scope["method"] != "GET":
        return 405, None
    credentials, memory_id = Credentials.of(dict(scope["headers"])), requested_memory(scope)
    status, caller = await authorize(credentials, memory_id)
    status = _audience.refusal(caller) or status
    if status == 200:
        return status, StreamReader(caller, credentials, memory_id)
    address, *_ = scope.get("client") or ("",)
    if status == 401 and await is_one_too_many(address):
        status = 429
    return status, None


async def _follow(
    reader: StreamReader, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
) -> None:
    disconnected = asyncio.create_task(_disconnect(receive))
    # Another conversation may have the id by now: the reader sends the creation time of its own.
    created_at, last_step = _number(scope, b"made"), _last_step_seen(scope)
    with _audience.including(reader, disconnected):
        async with _follower.watching(reader.memory_id, created_at) as watcher:
            disconnected.add_done_callback(lambda _: watcher.leave())
            with stream_open(), _heartbeats.waking(watcher):
                kind = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
                await _send_head(send, 200, {**headers, **kind})
                await _send(send, f"retry: {RECONNECT_MILLISECONDS}\n\n")
                kept = _number(scope, b"kept")
                known = watcher.kept if kept is None else kept
                await send_steps(
                    watcher, last_step if last_step <= watcher.step else 0, send, known
                )
                if watcher.is_deleted:
                    await _send(send, "event: deleted\ndata: deleted\n\n")
            await send({"type": "http.response.body", "body": b""})


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def is_stream(scope: Scope) -> bool:
    """Return whether a request is for a live stream."""
    return _match(scope) is not None


def requested_memory(scope: Scope) -> str:
    """Return the ID of the requested conversation, or ALL_CONVERSATIONS."""
    found = _match(scope)
    return ALL_CONVERSATIONS if found is None else found.kwargs.get("memory_id", ALL_CONVERSATIONS)


def _match(scope: Scope) -> ResolverMatch | None:
    """Return the route of a live stream; None for another path."""
    if scope["type"] != "http" or not scope["path"].endswith("/live/"):
        return None
    match = route_at(path_in(scope))
    return match if match and match.view_name in _NAMES else None


def _last_step_seen(scope: Scope) -> int:
    """Return the step that the reader has already: from the header Last-Event-ID of a reconnecting
    browser, else from `?after=`, else 0.
    """
    header = dict(scope["headers"]).get(b"last-event-id", b"")
    if header.isdigit() and len(header) <= 18:
        return int(header)
    return _number(scope, b"after") or 0


def _number(scope: Scope, name: bytes) -> int | None:
    field = declared_pattern(
        rb"(?:^|&)%b=([0-9]{1,18})(?:&|$)" % name, family="a number in an address"
    )
    found = field.search(scope["query_string"])
    return int(found[1]) if found else None


def _status_and_headers(scope: Scope) -> tuple[int, dict[str, str]]:
    """Return what Django's security middleware answers: 200 with headers, 301 with the HTTPS URL,
    or 400 for a foreign host.
    """
    request = ASGIRequest(scope, BytesIO())
    try:
        answer = SecurityMiddleware(_answer_host)(request)
    except DisallowedHost:
        answer = HttpResponse(status=400)
    headers = {name.lower(): value for name, value in answer.items()}  # type: ignore[union-attr]  # an answer of the view, which is no coroutine
    return answer.status_code, headers  # type: ignore[union-attr]  # an answer of the view, which is no coroutine


def _answer_host(request: HttpRequest) -> HttpResponse:
    request.get_host()
    return HttpResponse()


async def _refuse(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send a response without a body, and close the connection."""
    own = {"content-type": "text/plain", "connection": "close"}
    if status in (429, 503):
        own["retry-after"] = str(RETRY_SECONDS)
    await _send_head(send, status, {**headers, **own})
    await send({"type": "http.response.body", "body": b""})


async def _send_head(send: Send, status: int, headers: Mapping[str, str]) -> None:
    every = {**headers, "cache-control": "no-store", "x-request-id": request_id.get()}
    encoded = [(name.encode(), value.encode()) for name, value in every.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def _send(send: Send, text: str) -> None:
    with stream_waiting():
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
