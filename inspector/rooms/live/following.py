"""Live updates: tells readers of live streams soon after a commit that a conversation has new steps
or new derived data.

Each process has one follower, which reads the database for all readers. The follower notices
commits in one of these ways:

- On SQLite, the follower polls `PRAGMA data_version`, which changes with each commit.
- On PostgreSQL, the follower uses LISTEN. `notify_followers` sends NOTIFY after each commit.
- If polling or LISTEN fails, the follower reads the database every second.

After commits, one query reads the newest steps of all watched conversations. So a missed commit
makes an update late, but no update is lost.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from functools import reduce
from operator import add
from typing import NamedTuple

from django.db import DatabaseError, OperationalError, close_old_connections
from django.db.models import F, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from chatmemory import database
from chatmemory.database_errors import leaving_out_lost_nodes
from chatmemory.distribution import unreachable_nodes
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds, newest_change_or_erasure
from chatmemory.services import CHANNEL, keepers, newest_kept

SQLITE_SECONDS = 0.05
COALESCE_SECONDS = 0.05
RETRY_SECONDS = 1.0

# The id for watching the newest change or erasure of all conversations. No conversation has an
# empty id.
ALL_CONVERSATIONS = ""


logger = logging.getLogger(__name__)


class Newest(NamedTuple):
    """The newest values of a watched conversation, or of all conversations (ALL_CONVERSATIONS).
    Times are in microseconds since 1970.

    - `step`: the number of the newest step. For all conversations, the time of the newest change or
      erasure.
    - `made`: the time at which the conversation was created. None for all conversations.
    - `kept`: a number that grows when derived data is stored. For all conversations, the time at
      which derived data was last stored.
    """

    step: int
    made: int | None = None
    kept: int = 0


class Watcher:
    """Waits for new steps or derived data of one conversation, or of all conversations.

    There is no queue of events: a watcher only has the newest values of `step` and `kept`; see
    `Newest`.
    """

    def __init__(self, made: int | None = None) -> None:
        self.step = self.kept = 0
        self.has_left = False
        self.is_deleted = False
        self._made = made
        self._moved = asyncio.Event()

    def announce(self, step: int, kept: int = 0) -> None:
        if step > self.step or kept > self.kept:
            self.step, self.kept = max(step, self.step), max(kept, self.kept)
            self.wake()

    def find(self, newest: Newest | None) -> None:
        """Take over the values `newest`, which the follower has read from the database. The
        conversation counts as deleted if `newest` is None, or has another creation time than
        before.
        """
        if newest is None or self._made not in (None, newest.made):
            self.is_deleted = True
            self.leave()
        else:
            self._made = newest.made
            self.announce(newest.step, newest.kept)

    def leave(self) -> None:
        """End the present wait and all later waits, because the reader has gone or the conversation
        is deleted.
        """
        self.has_left = True
        self.wake()

    def wake(self) -> None:
        """End the present wait without news."""
        self._moved.set()

    async def later_than(self, step: int, kept: int = 0) -> int:
        """Wait for a step later than `step`, or for more derived data than `kept` (see `Newest`).
        Return the newest step.

        `wake` and `leave` end the wait early. Then there may be no later step.
        """
        if self.step <= step and self.kept <= kept and not self.has_left:
            self._moved.clear()
            await self._moved.wait()
        return self.step


class Follower:
    """Reads the database for all watchers of this process. Without watchers, the database is not
    read.
    """

    def __init__(self) -> None:
        self._watchers: defaultdict[str, set[Watcher]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="follower")

    @asynccontextmanager
    async def watching(self, memory_id: str, made: int | None = None) -> AsyncIterator[Watcher]:
        """Yield a watcher of a conversation. During the `async with` block, the follower keeps the
        watcher's values up to date. For ALL_CONVERSATIONS, these values are times (see `Newest`).

        `made` is the creation time of the conversation in microseconds since 1970, if the caller
        knows this time. If the stored conversation has another creation time, the watcher's
        conversation counts as deleted.
        """
        watcher = Watcher(made)
        self._watchers[memory_id].add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            with suppress(DatabaseError):  # the task updates the watcher when the database is back
                await self._refresh([memory_id])
            yield watcher
        finally:
            self._watchers[memory_id].discard(watcher)
            if not self._watchers[memory_id]:
                del self._watchers[memory_id]
            if not self._watchers and self._task is not None:
                self._task.cancel()
                self._task = None  # the task ends later; a watcher before that needs a new one

    async def _follow(self) -> None:
        """Refresh all watchers after each commit; every second if commits cannot be noticed."""
        is_failing = False
        while True:
            try:
                await self._refresh(list(self._watchers))
                is_postgresql = database.connection().vendor == "postgresql"
                async with aclosing(_postgresql() if is_postgresql else _sqlite()) as changes:
                    async for _ in changes:
                        is_failing = False
                        await self._refresh(list(self._watchers))
            except Exception:
                if not is_failing:
                    logger.exception(
                        "listening for changes of the database failed; live pages ask for changes "
                        "every second"
                    )
                is_failing = True
            await asyncio.sleep(RETRY_SECONDS)

    async def _refresh(self, memory_ids: list[str]) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._thread, newest_of, memory_ids)
        for memory_id in memory_ids:
            for watcher in self._watchers.get(memory_id, ()) if memory_id in found else ():
                watcher.find(found[memory_id])


def newest_of(memory_ids: list[str]) -> dict[str, Newest | None]:
    """Return the newest values of each conversation (see `Newest`), by ID; None for a conversation
    that does not exist.

    Conversations on an unreachable database node are left out. Raises OperationalError if the
    database cannot be read, or if the only ID in `memory_ids` is on an unreachable node.
    """
    try:
        return _read(memory_ids)
    except OperationalError:
        if len(memory_ids) == 1 or not unreachable_nodes():
            raise
        found: dict[str, Newest | None] = {}
        for memory_id in memory_ids:
            with leaving_out_lost_nodes():
                found |= _read([memory_id])
        return found
    finally:
        close_old_connections()  # this thread lives on, its connection must not


def _read(memory_ids: list[str]) -> dict[str, Newest | None]:
    rows = Memory.objects.filter(id__in=memory_ids).annotate(kept=_steps_kept())
    found: dict[str, Newest | None] = dict.fromkeys(memory_ids)
    for memory_id, step, kept, at in rows.values_list("pk", "last_step", "kept", "created_at"):
        found[memory_id] = Newest(step, microseconds(at), kept)
    if ALL_CONVERSATIONS in memory_ids:
        found[ALL_CONVERSATIONS] = Newest(newest_change_or_erasure(), kept=newest_kept())
    return found


def _steps_kept() -> Combinable:
    """Return the sum of the steps up to which each keeper has derived rows for a conversation."""
    steps = [Coalesce(F(each.column("step")), 0) for each in keepers()]
    return reduce(add, steps, Value(0))


async def _sqlite() -> AsyncGenerator[None, None]:
    opened = sqlite3.connect(database.connection().settings_dict["NAME"], uri=True)
    try:
        last_version = None
        while True:
            (version,) = opened.execute("PRAGMA data_version").fetchone()
            if version != last_version:
                last_version = version
                yield
            await asyncio.sleep(SQLITE_SECONDS)
    finally:
        opened.close()


async def _postgresql() -> AsyncGenerator[None, None]:
    import psycopg  # a project with SQLite need not have it
    from psycopg import sql

    # Django's connection parameters, such as TLS, without the class of its synchronous cursors.
    parameters = {
        name: value
        for name, value in database.connection().get_connection_params().items()
        if name != "cursor_factory"
    }
    async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as listening:
        await listening.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        yield
        while True:
            async for _ in listening.notifies(stop_after=1):
                pass
            await asyncio.sleep(COALESCE_SECONDS)  # a burst of commits counts as one change
            yield
