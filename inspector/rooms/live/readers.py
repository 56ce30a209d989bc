"""The readers of this process's live streams: how many are allowed, and whether they still have
permission.

A reader is identified by Django's session cookie or by an API token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import NamedTuple, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest, parse_cookie

from chatmemory import MemoryNotFound
from chatmemory.access.rates import PerStranger
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.reading import conversations
from chatmemory.roles import READ
from inspector.rooms.live.following import ALL_CONVERSATIONS

STREAMS = 1000
STREAMS_PER_CALLER = 50
AUTHORIZATION_SECONDS = 60
CHECKED_AT_ONCE = 50  # since new readers wait for the same thread

logger = logging.getLogger(__name__)


class Credentials(NamedTuple):
    """The headers of a request that identify the reader."""

    authorization: bytes
    cookie: bytes

    @classmethod
    def of(cls, headers: Mapping[bytes, bytes]) -> Credentials:
        return cls(headers.get(b"authorization", b""), headers.get(b"cookie", b""))


class StreamReader(NamedTuple):
    """A reader of a live stream. `caller` is the account or token, `credentials` the headers that
    prove the reader's identity, and `memory_id` the conversation.
    """

    caller: str
    credentials: Credentials
    memory_id: str


class Audience:
    """All readers of this process's streams. Each reader has a task `disconnected`, which ends when
    the client disconnects. The stream ends when this task ends or is cancelled.

    Once a minute, the permissions of all readers are checked together. The streams of readers
    without permission are ended.
    """

    def __init__(self) -> None:
        self._readers: dict[asyncio.Task[None], StreamReader] = {}
        self._checks: asyncio.Task[None] | None = None

    def refusal(self, caller: str) -> int | None:
        """Return None if another stream may be opened. Otherwise, return the HTTP status to answer.

        The status is 503 if this process has too many streams, and 429 if the `caller` (an account
        or token) has too many.
        """
        if len(self._readers) >= STREAMS:
            return 503
        callers = [reader.caller for reader in self._readers.values()]
        return 429 if caller and callers.count(caller) >= STREAMS_PER_CALLER else None

    @contextmanager
    def including(self, reader: StreamReader, disconnected: asyncio.Task[None]) -> Iterator[None]:
        """Count a reader during the `with` block. `disconnected` is a task that ends when the
        client disconnects. The audience cancels this task to end the stream.
        """
        self._readers[disconnected] = reader
        if self._checks is None:
            self._checks = asyncio.create_task(self._check_for_ever())
        try:
            yield
        finally:
            del self._readers[disconnected]
            disconnected.cancel()
            if not self._readers and self._checks is not None:
                self._checks.cancel()
                self._checks = None

    def end_all(self) -> None:
        """End every stream. Browsers reconnect by themselves."""
        for disconnected in self._readers:
            disconnected.cancel()

    async def check(self) -> None:
        """End the streams of readers who have lost permission, or whose permission cannot be
        checked.
        """
        readers = dict(self._readers)
        keys = list({(reader.credentials, reader.memory_id) for reader in readers.values()})
        for first in range(0, len(keys), CHECKED_AT_ONCE):
            some = keys[first : first + CHECKED_AT_ONCE]
            answers = await sync_to_async(_authorize)(some)
            refused = {
                each for each, answer in zip(some, answers, strict=True) if answer.status != 200
            }
            for disconnected, reader in readers.items():
                if (reader.credentials, reader.memory_id) in refused:
                    disconnected.cancel()

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(AUTHORIZATION_SECONDS)
            try:
                await self.check()
            except Exception:
                logger.exception(
                    "the permissions of the readers of live streams could not be checked, so all "
                    "live streams are closed"
                )
                self.end_all()


class Admittance(NamedTuple):
    """The HTTP status for a reader who wants to open a stream. With 200, `caller` is the reader's
    account or token.
    """

    status: int
    caller: str = ""


async def authorize(credentials: Credentials, memory_id: str) -> Admittance:
    """Return the admittance of a reader with these `credentials` to the stream of a conversation.
    The status is 200 if the reader may follow the conversation. Otherwise, the status is an error:

    - 401: there is no valid session or token, or the account has no permission to read.
    - 403: the token is limited to memory IDs with a prefix, but `memory_id` is ALL_CONVERSATIONS.
    - 404: the conversation does not exist, or its ID does not have the token's prefix.
    - 503: the database cannot answer.
    """
    (answer,) = await sync_to_async(_authorize)([(credentials, memory_id)])
    return answer


async def is_one_too_many(address: str) -> bool:
    """Count a request without a valid session or token. Return whether the address has sent more
    such requests than the API allows.
    """
    return not await sync_to_async(_is_counted)(address)


def _is_counted(address: str) -> bool:
    request = SimpleNamespace(META={"REMOTE_ADDR": address})
    return PerStranger().allow_request(request, None)


def _authorize(checks: Collection[tuple[Credentials, str]]) -> list[Admittance]:
    try:
        return [_admit(*each) for each in checks]
    finally:
        close_old_connections()  # this thread stays, its connection must not


def _admit(credentials: Credentials, memory_id: str) -> Admittance:
    try:
        caller, prefix = _caller(credentials)
        if not caller:
            return Admittance(401)
        if memory_id == ALL_CONVERSATIONS:
            return Admittance(403) if prefix else Admittance(200, caller)
        conversations.memory(memory_id)
    except MemoryNotFound:
        return Admittance(404)
    except DatabaseError:
        return Admittance(503)
    return Admittance(200, caller) if memory_id.startswith(prefix) else Admittance(404)


def _caller(credentials: Credentials) -> tuple[str, str]:
    """Return the account or token that sent the headers, and the prefix of IDs to which it is
    limited. Both are "" without permission.

    With a bearer token, the session does not count.
    """
    scheme, _, secret = credentials.authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        try:
            token = token_of(secret.strip())
        except TokenRefused:
            return "", ""
        return f"token {token.pk}", token.prefix
    cookies = parse_cookie(credentials.cookie.decode("latin-1"))
    if not (session_key := cookies.get(settings.SESSION_COOKIE_NAME)):
        return "", ""
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    # get_user reads only the session of a request.
    user = get_user(cast(HttpRequest, SimpleNamespace(session=store)))
    return (f"user {user.pk}", "") if user.is_active and user.has_perm(READ) else ("", "")
