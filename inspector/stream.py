"""The live stream of a conversation, `/c/<id>/live/`: server-sent events, beside Django.

Django's ASGI handler would hold a thread for every open stream; this route holds none. Who may read
is asked of Django's own session when the stream opens, and again every minute.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import HttpRequest

from chatmemory import queries
from chatmemory.addresses import memory_id_at
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.live import Follower, Watcher

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

T = TypeVar("T")

HEARTBEAT_SECONDS = 15
ACCESS_SECONDS = 60
RETRY = b"retry: 1000\n\n"
_PATH = re.compile(r"/c/([A-Za-z0-9._~-]+)/live/")
_follower = Follower()
_open: set[asyncio.Task[None]] = set()


def is_stream(scope: Scope) -> bool:
    return scope["type"] == "http" and bool(_PATH.fullmatch(scope["path"]))


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    """Sends `event: step`, `id: <newest step>` whenever steps were added, until the reader leaves.

    A reader who comes back with Last-Event-ID hears at once of what was missed. 401 without a
    sign-in, 404 for an unknown conversation, 405 for anything but GET.
    """
    status, memory_id = await _admission(scope)
    if status != 200:
        await _refuse(send, status)
        return
    async with _follower.watching(memory_id) as watcher:
        await _start(send)
        gone = asyncio.create_task(_disconnected(receive))
        _open.add(gone)
        try:
            await tell(scope, watcher, send, gone)
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
    if not await _is_signed_in(scope):
        return 401, ""
    found = _PATH.fullmatch(scope["path"])
    try:
        memory_id = memory_id_at(found[1] if found else "")
        await _ask(queries.memory, memory_id)
    except (ValueError, MemoryNotFound):
        return 404, ""
    return 200, memory_id


async def tell(scope: Scope, watcher: Watcher, send: Send, gone: asyncio.Task[None]) -> None:
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
            if not await _is_signed_in(scope):
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


async def _is_signed_in(scope: Scope) -> bool:
    return await _ask(_user_is_active, _session_key(scope))


async def _ask(question: Callable[[str], T], about: str) -> T:
    """Asks the database, over a new connection should the last one have been lost."""

    def ask() -> T:
        close_old_connections()
        return question(about)

    return await sync_to_async(ask)()


def _session_key(scope: Scope) -> str:
    cookie: SimpleCookie = SimpleCookie()
    try:
        cookie.load(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return ""
    session = cookie.get(settings.SESSION_COOKIE_NAME)
    return session.value if session else ""


def _user_is_active(session_key: str) -> bool:
    if not session_key:
        return False
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(cast(HttpRequest, SimpleNamespace(session=store)))
    return user.is_authenticated and user.is_active


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send) -> None:
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _write(send, RETRY)


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _refuse(send: Send, status: int) -> None:
    headers = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
