"""The thread of a server that finds incidents anew, soon after conversations have changed."""

from __future__ import annotations

import logging
from threading import Event, Thread

from django.db import connections

from chatmemory.services import IncidentFinder, empty_leftover_log

PAUSE_SECONDS, SECONDS = 2.0, 0.5  # a fifth of a core at most

logger = logging.getLogger(__name__)


class IncidentThread(Thread):
    """Looks for incidents again and again until it is stopped. Whatever fails is logged once, and
    tried again. Between its rounds it has no connection to the database.
    """

    def __init__(self) -> None:
        super().__init__(name="incidents", daemon=True)
        self._is_stopped = Event()

    def run(self) -> None:
        finder, is_failing = IncidentFinder(), False
        while not self._is_stopped.wait(PAUSE_SECONDS):
            try:
                finder.find_some(SECONDS)
                empty_leftover_log()
                is_failing = False
            except Exception:
                if not is_failing:
                    logger.exception("incidents cannot be found; trying again")
                is_failing = True
            finally:
                connections.close_all()

    def stop(self) -> None:
        """End the thread after the conversation that it is at."""
        self._is_stopped.set()
