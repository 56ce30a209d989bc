"""How many answers a client may read slowly at once: each is in memory until it has been read."""

from __future__ import annotations

import asyncio
from collections import Counter

from django.conf import settings
from django.http import parse_cookie

from inspector.asgi import Message, Scope, Send

SLOW_ANSWERS = 4
SLOW_SECONDS = 2.0


class SlowReaders:
    """The answers of this process whose client has let it wait for two seconds, by client.

    All methods belong to one event loop.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def reader(self, scope: Scope) -> Reader:
        return Reader(self._counts, clients_of(scope))


class Reader:
    """Who reads one answer. Only the time counts in which the server waits for it."""

    def __init__(self, counts: Counter[str], clients: frozenset[str]) -> None:
        self._counts = counts
        self._clients = clients
        self._left = SLOW_SECONDS
        self._is_slow = False

    @property
    def has_too_many(self) -> bool:
        return any(self._counts[client] >= SLOW_ANSWERS for client in self._clients)

    def timed(self, send: Send) -> Send:
        """Return what sends the answer, and notes how long its client lets it wait."""

        async def sending(message: Message) -> None:
            if self._is_slow:
                await send(message)
                return
            loop = asyncio.get_running_loop()
            began, timer = loop.time(), loop.call_later(self._left, self._count)
            try:
                await send(message)
            finally:
                timer.cancel()
                self._left -= loop.time() - began

        return sending

    def end(self) -> None:
        if self._is_slow:
            self._counts.subtract(self._clients)
            for client in self._clients:
                if not self._counts[client]:
                    del self._counts[client]

    def _count(self) -> None:
        self._is_slow = True
        self._counts.update(self._clients)


def clients_of(scope: Scope) -> frozenset[str]:
    """Return by what a client is known: its token, its session or both, else its address.

    What it makes up beside a valid one is no way around the count, as both are counted.
    """
    address, _ = scope.get("client") or ("", 0)
    headers = [(name, value.decode("latin1")) for name, value in scope.get("headers", ())]
    given = [value.split() for name, value in headers if name == b"authorization"]
    cookies = parse_cookie("; ".join(value for name, value in headers if name == b"cookie"))
    session = cookies.get(settings.SESSION_COOKIE_NAME)
    known = [f"token {words[-1]}" for words in given if words]
    known += [f"session {session}"] if session else []
    return frozenset(known or [f"address {address}"])
