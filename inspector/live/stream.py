"""The live streams, `/c/<id>/live/` and the fleet's `/live/`: server-sent events, beside Django.

Django's ASGI handler would hold a thread for every open stream; this route holds none. Who may read
is asked when the stream opens, and again every minute: of Django's own session, or of the API token
that a program sends.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest

from chatmemory import queries
from chatmemory.access.roles import READ
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.converters import memory_id_at
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.live import ALL_CONVERSATIONS, Follower, Watcher
from chatmemory.services.database_errors import RETRY_SECONDS
from inspector.middleware.requests import log_request, request_name
from inspector.observability.logs import request_id
from inspector.observability.metrics import stream_open, stream_waiting

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

T = TypeVar("T")

HEARTBEAT_SECONDS = 15
ACCESS_SECONDS = 60
RETRY = b"retry: 1000\n\n"
_PATH = re.compile(r"/(?:c/([A-Za-z0-9._~-]+)/)?live/")
_follower = Follower()
_open: set[asyncio.Task[None]] = set()


def is_stream(scope: Scope) -> bool:
    return scope["type"] == "http" and bool(_PATH.fullmatch(scope["path"]))


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends `event: step`, `id: <newest step>` whenever steps were added, until the reader leaves.

    A reader who comes back with Last-Event-ID hears at once of what was missed. 401 without a
    sign-in or a token, 403 for the fleet with a token for some ids, 404 for an unknown
    conversation, 405 for anything but GET, 503 while the database cannot work.
    """
    started = asyncio.get_running_loop().time()
    offered = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    request_id.set(request_name(offered))
    status, memory_id = await _admission(scope)
    try:
        if status == 200:
            await _stream(scope, receive, send, memory_id)
        else:
            await _refuse(send, status)
    finally:
        seconds = asyncio.get_running_loop().time() - started
        log_request(scope["method"], "live", status, seconds, actor="")


async def _stream(scope: Scope, receive: Receive, send: Send, memory_id: str) -> None:
    async with _follower.watching(memory_id) as watcher:
        gone = asyncio.create_task(_disconnected(receive))
        _open.add(gone)
        try:
            with stream_open():
                await _start(send)
                await tell(scope, memory_id, watcher, send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            _open.discard(gone)
            gone.cancel()


def end_streams() -> None:
    """Called when the server stops: readers come back by themselves once it is up again."""
    for gone in _open:
        gone.cancel()


async def _admission(scope: Scope) -> tuple[int, str]:
    if scope["method"] != "GET":
        return 405, ""
    found = _PATH.fullmatch(scope["path"])
    address = found[1] if found else None
    try:
        memory_id = ALL_CONVERSATIONS if address is None else memory_id_at(address)
    except ValueError:
        return 404, ""
    try:
        status = await _ask(_status, scope, memory_id)
    except DatabaseError:
        return 503, ""
    return status, memory_id


async def tell(
    scope: Scope, memory_id: str, watcher: Watcher, send: Send, gone: asyncio.Task[None]
) -> None:
    """Send steps and heartbeats until the reader is `gone`, or may no longer read."""
    clock = asyncio.get_running_loop().time
    told, asked = _last_event_id(scope), clock()
    while not gone.done():
        news = asyncio.create_task(watcher.later_than(told))
        await asyncio.wait(
            {news, gone}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        news.cancel()
        if clock() - asked >= ACCESS_SECONDS:
            if not await _may_still_read(scope, memory_id):
                return
            asked = clock()
        if watcher.step > told:
            told = watcher.step
            await _write(send, f"event: step\nid: {told}\ndata: {told}\n\n".encode())
        elif not gone.done():
            await _write(send, b": still here\n\n")


def _last_event_id(scope: Scope) -> int:
    """The step that the reader saw last: from the header of a reconnect, else the address."""
    header = dict(scope["headers"]).get(b"last-event-id", b"")
    query = re.search(rb"(?:^|&)after=([0-9]{1,18})(?:&|$)", scope["query_string"])
    text = header if header.isdigit() and len(header) <= 18 else query[1] if query else b"0"
    return int(text)


async def _may_still_read(scope: Scope, memory_id: str) -> bool:
    """A database that cannot answer ends the stream: its reader comes back and asks again."""
    try:
        return await _ask(_status, scope, memory_id) == 200
    except DatabaseError:
        return False


async def _ask(question: Callable[[Scope, str], T], scope: Scope, memory_id: str) -> T:
    """Asks the database, over a new connection should the last one have been lost."""

    def ask() -> T:
        close_old_connections()
        return question(scope, memory_id)

    return await sync_to_async(ask)()


def _status(scope: Scope, memory_id: str) -> int:
    """200 for those who may follow this conversation, or the fleet; else what to answer."""
    prefix = _readable_prefix(dict(scope["headers"]))
    if prefix is None:
        return 401
    if memory_id == ALL_CONVERSATIONS:
        return 403 if prefix else 200
    try:
        queries.memory(memory_id)
    except MemoryNotFound:
        return 404
    return 200 if memory_id.startswith(prefix) else 404


def _readable_prefix(headers: Mapping[bytes, bytes]) -> str | None:
    """What the ids begin with that this caller may read; empty for all, None for nobody."""
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        try:
            return str(token_of(secret.strip()).prefix)
        except TokenRefused:
            return None
    return "" if _user_may_read(_session_key(headers)) else None


def _session_key(headers: Mapping[bytes, bytes]) -> str:
    cookie: SimpleCookie = SimpleCookie()
    try:
        cookie.load(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return ""
    session = cookie.get(settings.SESSION_COOKIE_NAME)
    return session.value if session else ""


def _user_may_read(session_key: str) -> bool:
    if not session_key:
        return False
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(cast(HttpRequest, SimpleNamespace(session=store)))
    return user.is_active and user.has_perm(READ)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send) -> None:
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.get().encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _write(send, RETRY)


async def _write(send: Send, body: bytes) -> None:
    with stream_waiting():
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _refuse(send: Send, status: int) -> None:
    headers = [
        (b"content-type", b"text/plain"),
        (b"cache-control", b"no-store"),
        (b"x-request-id", request_id.get().encode()),
    ]
    if status == 503:
        headers.append((b"retry-after", str(RETRY_SECONDS).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
