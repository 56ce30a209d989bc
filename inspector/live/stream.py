"""The live streams: an ASGI application beside Django.

Django's ASGI handler would keep a thread for every open stream. These streams need none: they ask
the database in a thread only when they open and once a minute, to check the reader's permission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from chatmemory.live import Follower, Watcher
from inspector.asgi import Receive, Scope, Send
from inspector.live.authorization import authorize
from inspector.live.events import send_end, send_heartbeat, send_refusal, send_start, send_step
from inspector.live.routes import last_step_seen, requested_memory
from inspector.live.rules import status_and_headers
from inspector.observability.metrics import stream_open
from inspector.observability.requests import choose_request_id, log_request, request_id

HEARTBEAT_SECONDS = 15
AUTHORIZATION_SECONDS = 60
STREAMS = 1000
STREAMS_PER_CALLER = 50

_follower = Follower()
_open_streams: dict[asyncio.Task[None], str] = {}  # with the account or token that reads


@dataclass(frozen=True)
class _Request:
    """A request for a stream: the status to answer with, headers for the answer, and with 200 the
    conversation and the account or token that reads it.
    """

    status: int
    headers: dict[str, str]
    memory_id: str = ""
    caller: str = ""


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends `event: step` with the newest step number whenever a conversation has new steps, until
    the reader disconnects.

    A reader who reconnects with Last-Event-ID is told at once about steps it missed. Answers like
    Django to a host that is not the site's and to plain HTTP, 405 for any method but
    GET, 429 or 503 if too many streams are open, and what `authorize` says.
    """
    started = asyncio.get_running_loop().time()
    asked_id = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    request_id.set(choose_request_id(asked_id))
    request = await _judge(scope)
    try:
        if request.status == 200:
            await _follow(request, scope, receive, send)
        else:
            await send_refusal(send, request.status, request.headers)
    finally:
        seconds = asyncio.get_running_loop().time() - started
        log_request(scope["method"], "live", request.status, seconds, actor="")


def close_streams() -> None:
    """Ends every open stream of this process. Browsers reconnect by themselves."""
    for disconnected in _open_streams:
        disconnected.cancel()


async def send_steps(
    scope: Scope, memory_id: str, watcher: Watcher, send: Send, disconnected: asyncio.Task[None]
) -> None:
    """Sends steps and heartbeats until the reader disconnects or loses permission."""
    clock = asyncio.get_running_loop().time
    sent, authorized_at = last_step_seen(scope), clock()
    while not disconnected.done():
        await _wait_for_step(watcher, sent, disconnected)
        if clock() - authorized_at >= AUTHORIZATION_SECONDS:
            if (await authorize(dict(scope["headers"]), memory_id)).status != 200:
                return
            authorized_at = clock()
        if watcher.step > sent:
            sent = watcher.step
            await send_step(send, sent)
        elif not disconnected.done():
            await send_heartbeat(send)


async def _judge(scope: Scope) -> _Request:
    status, headers = status_and_headers(scope)
    if status != 200:
        return _Request(status, headers)
    if scope["method"] != "GET":
        return _Request(405, headers)
    memory_id = requested_memory(scope)
    status, caller = await authorize(dict(scope["headers"]), memory_id)
    return _Request(_crowded(caller) or status, headers, memory_id, caller)


def _crowded(caller: str) -> int | None:
    """Return the status for a reader for whom there is no stream left, else None."""
    if len(_open_streams) >= STREAMS:
        return 503
    has_enough = list(_open_streams.values()).count(caller) >= STREAMS_PER_CALLER
    return 429 if caller and has_enough else None


async def _follow(request: _Request, scope: Scope, receive: Receive, send: Send) -> None:
    disconnected = asyncio.create_task(_disconnect(receive))
    _open_streams[disconnected] = request.caller
    try:
        async with _follower.watching(request.memory_id) as watcher:
            with stream_open():
                await send_start(send, request.headers)
                await send_steps(scope, request.memory_id, watcher, send, disconnected)
            await send_end(send)
    finally:
        del _open_streams[disconnected]
        disconnected.cancel()


async def _wait_for_step(watcher: Watcher, sent: int, disconnected: asyncio.Task[None]) -> None:
    """Waits for a step after `sent`, for the reader to disconnect, or for the next heartbeat."""
    newer = asyncio.create_task(watcher.later_than(sent))
    await asyncio.wait(
        {newer, disconnected}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    newer.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
