"""The live streams: an ASGI application beside Django.

Django's ASGI handler would keep a thread for every open stream. These streams need none: they ask
the database in a thread only when they open and once a minute, to check the reader's permission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from chatmemory.live import Follower, Watcher
from inspector.asgi import Receive, Scope, Send
from inspector.live.audience import Audience, Reader
from inspector.live.authorization import Credentials, authorize, is_one_too_many
from inspector.live.events import (
    send_deletion,
    send_end,
    send_heartbeat,
    send_refusal,
    send_start,
    send_step,
)
from inspector.live.heartbeats import Heartbeats
from inspector.live.routes import last_step_seen, requested_making, requested_memory
from inspector.live.rules import status_and_headers
from inspector.observability.logs import choose_request_id, log_request, request_id
from inspector.observability.metrics import stream_open

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
    reader: Reader | None = None


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
            await send_refusal(send, request.status, request.headers)
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
            await send_step(send, sent)
        else:
            await send_heartbeat(send)


async def _judge(scope: Scope) -> _Request:
    status, headers = status_and_headers(scope)
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
        status, headers, Reader(caller, credentials, memory_id) if status == 200 else None
    )


async def _follow(
    reader: Reader, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
) -> None:
    disconnected = asyncio.create_task(_disconnect(receive))
    with _audience.including(reader, disconnected):
        async with _follower.watching(reader.memory_id, requested_making(scope)) as watcher:
            disconnected.add_done_callback(lambda _: watcher.leave())
            with stream_open(), _heartbeats.waking(watcher):
                await send_start(send, headers)
                seen = last_step_seen(scope)
                await send_steps(watcher, seen if seen <= watcher.step else 0, send)
                if watcher.is_deleted:
                    await send_deletion(send)
            await send_end(send)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
