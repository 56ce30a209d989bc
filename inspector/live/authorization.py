"""Permission to follow a live stream: by Django's session cookie, or by an API token."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from types import SimpleNamespace
from typing import cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest

from chatmemory import MemoryNotFound, queries
from chatmemory.access.roles import READ
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.live import ALL_CONVERSATIONS

Headers = Mapping[bytes, bytes]


async def authorize(headers: Headers, memory_id: str) -> int:
    """Return 200 if the sender of these headers may follow this conversation, else the status to
    answer with.

    401 without a valid session or token, 403 for ALL_CONVERSATIONS with a token that is limited to
    a prefix, 404 for an unknown conversation or one outside the token's prefix, and 503 while the
    database cannot answer.
    """
    try:
        return await sync_to_async(_authorize)(headers, memory_id)
    except DatabaseError:
        return 503


def _authorize(headers: Headers, memory_id: str) -> int:
    try:
        return _status_for(_readable_prefix(headers), memory_id)
    finally:
        close_old_connections()  # this thread stays, its connection must not


def _status_for(prefix: str | None, memory_id: str) -> int:
    if prefix is None:
        return 401
    if memory_id == ALL_CONVERSATIONS:
        return 403 if prefix else 200
    try:
        queries.memory(memory_id)
    except MemoryNotFound:
        return 404
    return 200 if memory_id.startswith(prefix) else 404


def _readable_prefix(headers: Headers) -> str | None:
    """Return what the readable ids start with ("" for all ids), or None without permission.

    A request with a bearer token is judged by the token alone.
    """
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        try:
            return str(token_of(secret.strip()).prefix)
        except TokenRefused:
            return None
    return "" if _user_may_read(_session_key(headers)) else None


def _session_key(headers: Headers) -> str:
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
    # get_user reads nothing of a request but its session.
    user = get_user(cast(HttpRequest, SimpleNamespace(session=store)))
    return user.is_active and user.has_perm(READ)
