"""The live streams: an ASGI application beside Django.

Django's ASGI handler would keep a thread for every open stream. These streams need none: they ask
the database in a thread only when they open and once a minute, to check the reader's permission.
"""

from __future__ import annotations

import asyncio

from chatmemory.live import Follower, Watcher
from inspector.asgi import Receive, Scope, Send
from inspector.live.authorization import authorize
from inspector.live.events import send_end, send_heartbeat, send_refusal, send_start, send_step
from inspector.live.routes import last_step_seen, requested_memory
from inspector.observability.metrics import stream_open
from inspector.observability.requests import choose_request_id, log_request, request_id

HEARTBEAT_SECONDS = 15
AUTHORIZATION_SECONDS = 60

_follower = Follower()
_open_streams: set[asyncio.Task[None]] = set()


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends `event: step` with the newest step number whenever a conversation has new steps, until
    the reader disconnects.

    A reader who reconnects with Last-Event-ID is told at once about steps it missed. Answers 405
    for any method but GET, 404 for a malformed id, and what `authorize` says.
    """
    started = asyncio.get_running_loop().time()
    headers = dict(scope["headers"])
    request_id.set(choose_request_id(headers.get(b"x-request-id", b"").decode("latin-1")))
    status, memory_id = await _admit(scope)
    try:
        if status == 200:
            await _follow(scope, receive, send, memory_id)
        else:
            await send_refusal(send, status)
    finally:
        seconds = asyncio.get_running_loop().time() - started
        log_request(scope["method"], "live", status, seconds, actor="")


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
            if await authorize(dict(scope["headers"]), memory_id) != 200:
                return
            authorized_at = clock()
        if watcher.step > sent:
            sent = watcher.step
            await send_step(send, sent)
        elif not disconnected.done():
            await send_heartbeat(send)


async def _admit(scope: Scope) -> tuple[int, str]:
    """Return the status to answer with and the requested conversation."""
    if scope["method"] != "GET":
        return 405, ""
    try:
        memory_id = requested_memory(scope)
    except ValueError:
        return 404, ""
    return await authorize(dict(scope["headers"]), memory_id), memory_id


async def _follow(scope: Scope, receive: Receive, send: Send, memory_id: str) -> None:
    async with _follower.watching(memory_id) as watcher:
        disconnected = asyncio.create_task(_disconnect(receive))
        _open_streams.add(disconnected)
        try:
            with stream_open():
                await send_start(send)
                await send_steps(scope, memory_id, watcher, send, disconnected)
            await send_end(send)
        finally:
            _open_streams.discard(disconnected)
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
