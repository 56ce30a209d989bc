"""The server's thread that runs the keepers. It computes derived data soon after conversations have
changed.

If an erasure cannot empty SQLite's write-ahead log, the thread empties the log later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Event, Thread
from time import monotonic

from django.db import connections

from chatmemory.services import Rounds, empty_leftover_log
from chatmemory.signals import memory_changed

# Delays in seconds after a change: by this process, and by another process.
SOON, PAUSE = 0.1, 1.0
AT_A_STRETCH = 1.0  # a round
# The rest after a round: at least so many seconds, and so many times as long as the round took
LEAST, REST = 0.25, 3

logger = logging.getLogger(__name__)


class KeeperThread(Thread):
    """A thread that computes derived data in rounds until it is stopped. Between rounds, the thread
    has no database connection.

    After a failure, the next round tries again. Of several failures in a row, only the first is
    logged.

    - `also`: functions to call at the end of each round.
    - `place`: returns a context manager in which a round runs. The server's context manager counts
      the round as one of the simultaneous requests, whose number is limited.
    """

    def __init__(
        self,
        rounds: Rounds | None = None,
        place: Callable[[], AbstractContextManager[object]] = nullcontext,
        also: Sequence[Callable[[], object]] = (),
    ) -> None:
        super().__init__(name="keeper", daemon=True)
        self._rounds, self._place, self._also = rounds or Rounds(), place, also
        self._stopped, self._changed = Event(), Event()

    def run(self) -> None:
        memory_changed.connect(self._wake)
        is_failing = False
        while not self._stopped.wait(SOON):
            self._changed.clear()
            try:
                with self._place():
                    began = monotonic()
                    has_more = self._keep()
                is_failing = False
            except Exception:
                if self._stopped.is_set():
                    break
                if not is_failing:
                    logger.exception(
                        "the derived data of conversations, such as incidents, cannot be stored; "
                        "trying again"
                    )
                is_failing, has_more, began = True, False, monotonic()
            self._stopped.wait(max(LEAST, REST * (monotonic() - began)))
            if not has_more:
                self._changed.wait(PAUSE)
        memory_changed.disconnect(self._wake)

    def _keep(self) -> bool:
        """Compute derived data for a while. Return whether more has to be computed."""
        try:
            has_more = self._rounds.keep_some(AT_A_STRETCH)
            empty_leftover_log()
            for each in self._also:
                each()
        finally:
            connections.close_all()
        return has_more

    def _wake(self, **_: object) -> None:
        self._changed.set()

    def stop(self) -> None:
        """Let the thread end: after the current round, or at once between rounds. Return without
        waiting for the end.
        """
        self._stopped.set()
        self._changed.set()
