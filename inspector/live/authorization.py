"""Permission to follow a live stream: by Django's session cookie, or by an API token."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import NamedTuple, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest, parse_cookie

from chatmemory import MemoryNotFound, queries
from chatmemory.access.roles import READ
from chatmemory.access.throttling import PerStranger
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.live import ALL_CONVERSATIONS


class Credentials(NamedTuple):
    """The headers of a request that say who asks."""

    authorization: bytes
    cookie: bytes

    @classmethod
    def of(cls, headers: Mapping[bytes, bytes]) -> Credentials:
        return cls(headers.get(b"authorization", b""), headers.get(b"cookie", b""))


Asked = tuple[Credentials, str]  # who wants to follow which conversation


class Admittance(NamedTuple):
    """The status to answer with, and with 200 the account or token that may read."""

    status: int
    caller: str = ""


async def authorize(credentials: Credentials, memory_id: str) -> Admittance:
    """Return 200 if the sender of these headers may follow this conversation, else the status to
    answer with.

    401 without a valid session or token, 403 for ALL_CONVERSATIONS with a token that is limited to
    a prefix, 404 for an unknown conversation or one outside the token's prefix, and 503 while the
    database cannot answer.
    """
    (answer,) = await sync_to_async(_authorize)([(credentials, memory_id)])
    return answer


async def is_one_too_many(address: str) -> bool:
    """Count a request without a valid session or token, as the API does. Return whether its address
    had too many.
    """
    return not await sync_to_async(_is_counted)(address)


def _is_counted(address: str) -> bool:
    request = SimpleNamespace(META={"REMOTE_ADDR": address})
    try:
        return PerStranger().allow_request(request, None)
    finally:
        close_old_connections()


async def still_admitted(asked: Collection[Asked]) -> set[Asked]:
    """Return those that may still follow; none while the database cannot answer."""
    answers = await sync_to_async(_authorize)(asked)
    return {each for each, answer in zip(asked, answers, strict=True) if answer.status == 200}


def _authorize(asked: Collection[Asked]) -> list[Admittance]:
    try:
        return [_admit(*each) for each in asked]
    finally:
        close_old_connections()  # this thread stays, its connection must not


class _Reader(NamedTuple):
    """An account or a token, and what the ids that it may read start with ("" for all ids)."""

    caller: str
    prefix: str


def _admit(credentials: Credentials, memory_id: str) -> Admittance:
    try:
        reader = _reader(credentials)
        return Admittance(401) if reader is None else _admit_reader(reader, memory_id)
    except DatabaseError:
        return Admittance(503)


def _admit_reader(reader: _Reader, memory_id: str) -> Admittance:
    if memory_id == ALL_CONVERSATIONS:
        return Admittance(403) if reader.prefix else Admittance(200, reader.caller)
    try:
        queries.memory(memory_id)
    except MemoryNotFound:
        return Admittance(404)
    may_read = memory_id.startswith(reader.prefix)
    return Admittance(200, reader.caller) if may_read else Admittance(404)


def _reader(credentials: Credentials) -> _Reader | None:
    """Return who may read, or None without permission.

    A request with a bearer token is judged by the token alone.
    """
    scheme, _, secret = credentials.authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        try:
            token = token_of(secret.strip())
        except TokenRefused:
            return None
        return _Reader(f"token {token.pk}", token.prefix)
    user = _reading_user(_session_key(credentials.cookie))
    return _Reader(f"user {user.pk}", "") if user else None


def _session_key(header: bytes) -> str:
    return parse_cookie(header.decode("latin-1")).get(settings.SESSION_COOKIE_NAME, "")


def _reading_user(session_key: str) -> User | None:
    if not session_key:
        return None
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # get_user reads nothing of a request but its session.
    user = get_user(cast(HttpRequest, SimpleNamespace(session=store)))
    may_read = user.is_active and user.has_perm(READ)
    return cast(User, user) if may_read else None
