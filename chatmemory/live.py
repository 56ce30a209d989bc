"""Following the ledger: who watches a conversation learns its newest step soon after the commit.

One follower per process serves any number of watchers. On SQLite it asks `PRAGMA data_version`,
which changes with every commit of another connection; on PostgreSQL it LISTENs for what `services`
NOTIFYs after its commits. Whatever woke it, it reads the steps of all watched conversations in one
query, so a missed signal costs time and never an event: watchers compare step numbers. Where it
cannot listen, it looks every second.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress

import psycopg
from django.db import DatabaseError, connection
from psycopg import sql

from chatmemory.models import Memory
from chatmemory.queries import newest_eviction
from chatmemory.services import CHANNEL

SQLITE_SECONDS = 0.25
COALESCE_SECONDS = 0.05
RETRY_SECONDS = 1.0

# Watches every conversation: tells the moment of the newest eviction. No id is empty.
ALL_CONVERSATIONS = ""


logger = logging.getLogger(__name__)


class Watcher:
    """One reader of one conversation, or of the fleet. Only the newest step counts, so nothing
    queues up.
    """

    def __init__(self) -> None:
        self.step = 0
        self._moved = asyncio.Event()

    def tell(self, step: int) -> None:
        if step > self.step:
            self.step = step
            self._moved.set()

    async def later_than(self, step: int) -> int:
        """Wait until steps go on beyond `step`. Waiting in vain and asking again loses nothing."""
        while self.step <= step:
            self._moved.clear()
            await self._moved.wait()
        return self.step


class Follower:
    """Reads the database for all watchers of this process; sleeps while there are none."""

    def __init__(self) -> None:
        self._watchers: defaultdict[str, set[Watcher]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="follower")

    @asynccontextmanager
    async def watching(self, memory_id: str) -> AsyncIterator[Watcher]:
        """A watcher that knows the newest step at once, and every later one.

        For ALL_CONVERSATIONS it knows the moment of the newest eviction instead.
        """
        watcher = Watcher()
        self._watchers[memory_id].add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            with suppress(DatabaseError):  # then the task tells it, once the database is back
                await self._refresh([memory_id])
            yield watcher
        finally:
            self._watchers[memory_id].discard(watcher)
            if not self._watchers[memory_id]:
                del self._watchers[memory_id]
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None  # it ends later; who comes meanwhile needs a new one

    async def _follow(self) -> None:
        """Survives a database that goes away or cannot be listened to: asks it every second."""
        is_failing = False
        while True:
            try:
                await self._refresh(list(self._watchers))
                async with aclosing(_changes()) as changes:
                    async for _ in changes:
                        is_failing = False
                        await self._refresh(list(self._watchers))
            except Exception:
                if not is_failing:
                    logger.exception("the ledger cannot be followed; asking every second")
                is_failing = True
            await asyncio.sleep(RETRY_SECONDS)

    async def _refresh(self, memory_ids: list[str]) -> None:
        loop = asyncio.get_running_loop()
        steps = await loop.run_in_executor(self._thread, _steps, memory_ids)
        for memory_id, step in steps.items():
            for watcher in self._watchers.get(memory_id, ()):
                watcher.tell(step)


def _steps(memory_ids: list[str]) -> dict[str, int]:
    connection.close_if_unusable_or_obsolete()
    steps = dict(Memory.objects.filter(id__in=memory_ids).values_list("pk", "last_step"))
    if ALL_CONVERSATIONS in memory_ids:
        steps[ALL_CONVERSATIONS] = newest_eviction()
    return steps


def _changes() -> AsyncGenerator[None, None]:
    return _postgresql() if connection.vendor == "postgresql" else _sqlite()


async def _sqlite() -> AsyncGenerator[None, None]:
    database = sqlite3.connect(connection.settings_dict["NAME"])
    try:
        seen = None
        while True:
            (version,) = database.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen = version
                yield
            await asyncio.sleep(SQLITE_SECONDS)
    finally:
        database.close()


async def _postgresql() -> AsyncGenerator[None, None]:
    # Django's own parameters (TLS among them), less the one that is for its synchronous cursors
    parameters = {
        name: value
        for name, value in connection.get_connection_params().items()
        if name != "cursor_factory"
    }
    async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as listening:
        await listening.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        yield
        while True:
            async for _ in listening.notifies(stop_after=1):
                pass
            await asyncio.sleep(COALESCE_SECONDS)  # a burst of commits is one change
            yield
