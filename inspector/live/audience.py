"""The open streams of this process: how many there may be, and who may go on reading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from inspector.live.authorization import Credentials, still_admitted

STREAMS = 1000
STREAMS_PER_CALLER = 50
AUTHORIZATION_SECONDS = 60
CHECKED_AT_ONCE = 50  # new readers wait for the same thread

logger = logging.getLogger(__name__)


class Reader(NamedTuple):
    """Who reads what: an account or token, the headers that prove it, and a conversation."""

    caller: str
    credentials: Credentials
    memory_id: str


class Audience:
    """The readers of all streams, each with the task that ends its stream when it is done.

    Once a minute the permissions of all are checked together: checks of each on its own would cost
    more than the streams themselves.
    """

    def __init__(self) -> None:
        self._readers: dict[asyncio.Task[None], Reader] = {}
        self._checks: asyncio.Task[None] | None = None

    def refusal(self, caller: str) -> int | None:
        """Return the status for a reader for whom there is no stream left, else None."""
        if len(self._readers) >= STREAMS:
            return 503
        callers = [reader.caller for reader in self._readers.values()]
        return 429 if caller and callers.count(caller) >= STREAMS_PER_CALLER else None

    @contextmanager
    def including(self, reader: Reader, disconnected: asyncio.Task[None]) -> Iterator[None]:
        """Count a reader in, whose stream ends when the task is done or cancelled."""
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
        """End the streams of readers who may not read any more."""
        readers = dict(self._readers)
        asked = list({(reader.credentials, reader.memory_id) for reader in readers.values()})
        for first in range(0, len(asked), CHECKED_AT_ONCE):
            some = asked[first : first + CHECKED_AT_ONCE]
            refused = set(some) - await still_admitted(some)
            for disconnected, reader in readers.items():
                if (reader.credentials, reader.memory_id) in refused:
                    disconnected.cancel()

    async def _check_for_ever(self) -> None:
        while True:
            await asyncio.sleep(AUTHORIZATION_SECONDS)
            try:
                await self.check()
            except Exception:
                logger.exception("readers of live streams could not be checked; their streams end")
                self.end_all()
