"""Heartbeats of the live streams: proxies close a connection that stays silent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from chatmemory.live import Watcher

HEARTBEAT_SECONDS = 15


class Heartbeats:
    """Wakes each watcher every 15 seconds, some of them each second.

    One task serves all: a timer for each wait takes a third of the time that a step takes to reach
    a thousand readers.
    """

    def __init__(self) -> None:
        self._turns: list[set[Watcher]] = [set() for _ in range(HEARTBEAT_SECONDS)]
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def waking(self, watcher: Watcher) -> Iterator[None]:
        """Wake a watcher again and again during a block."""
        turn = min(self._turns, key=len)
        turn.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            turn.discard(watcher)
            if not any(self._turns) and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _beat(self) -> None:
        for turn in cycle(self._turns):
            await asyncio.sleep(HEARTBEAT_SECONDS / len(self._turns))
            for watcher in turn:
                watcher.wake()
