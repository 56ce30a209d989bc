"""How many requests a process works on at once, and the queue of the others.

A request that is worked on has a thread and, once it asks the database, a connection. One that
waits has neither. All methods belong to one event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

WAITING_FOR_ONE = 16
WAITING_FOR_ANY = 256


class Crowded(Exception):
    """Too many requests are waiting, or one has waited too long. The text says for what."""


@dataclass(frozen=True)
class Errand:
    """What a request wants: to read, or to write. `memory_id` is the one conversation that it
    writes, None if it writes none, several, or a new one. `long_work` names what takes long or may
    wait for any conversation.
    """

    is_write: bool = False
    memory_id: str | None = None
    long_work: str = ""

    @property
    def takes_turns(self) -> bool:
        """Whether one request with this errand is worked on at a time."""
        return self.memory_id is not None or bool(self.long_work)


class Places:
    """`most` places. One is kept for reads. Writers of the same conversation take turns: they would
    wait for one another in the database, and nobody else would get a place. So does long work.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._working: list[Errand] = []
        self._queue: dict[asyncio.Future[None], Errand] = {}

    async def take(self, errand: Errand, again: bool = False) -> None:
        """Wait for a place, up to the given seconds; `leave` gives it back. Raises Crowded.

        Who has begun an answer, and takes a place `again` to go on with it, is never refused.
        """
        if self._has_room(errand):
            self._working.append(errand)
            return
        if not again:
            self._check_queue(errand)
        turn = asyncio.get_running_loop().create_future()
        self._queue[turn] = errand
        try:
            async with asyncio.timeout(None if again else self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.leave(errand)  # its turn came as it gave up
            if isinstance(error, TimeoutError):
                raise Crowded(f"no turn came in {self._seconds:g} seconds") from None
            raise
        finally:
            self._queue.pop(turn, None)

    def leave(self, errand: Errand) -> None:
        """Give a place back, and give it to the first in the queue that may have it."""
        self._working.remove(errand)
        for turn, waiting in list(self._queue.items()):
            if not turn.done() and self._has_room(waiting):
                self._working.append(waiting)
                turn.set_result(None)

    def _has_room(self, errand: Errand) -> bool:
        if not errand.is_write:
            return len(self._working) < self._most
        writes = [other for other in self._working if other.is_write]
        is_anothers_turn = errand.takes_turns and errand in writes
        return (
            len(self._working) < self._most
            and len(writes) < self._most - 1
            and not is_anothers_turn
        )

    def _check_queue(self, errand: Errand) -> None:
        waiting = list(self._queue.values())
        if errand.takes_turns and waiting.count(errand) >= WAITING_FOR_ONE:
            others = errand.long_work or "changes of this conversation"
            raise Crowded(f"{WAITING_FOR_ONE} other {others} are waiting")
        if sum(other.is_write == errand.is_write for other in waiting) >= WAITING_FOR_ANY:
            raise Crowded(f"{WAITING_FOR_ANY} other requests are waiting")
