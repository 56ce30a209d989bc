"""Stores the calls of the spool. A file stays until its call is in the database."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

from django.db import DatabaseError, InterfaceError, close_old_connections

from chatmemory.database_errors import explain_error
from chatmemory.exceptions import ChatMemoryError
from inspector.rooms.calls.call import Dropped, DropReason, Source
from inspector.rooms.calls.writes import count_dropped, store
from inspector.rooms.recorder import spool

ACTOR = "recorder"
PAUSE, PAUSE_AFTER_AN_ERROR = 0.1, 1.0
GIVEN_UP_SECONDS = 600  # after which a call that cannot be stored is put aside
REFUSED = "refused"

logger = logging.getLogger(__name__)


class Storing:
    """Stores the calls of a folder, and waits while the database is down."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix
        self._tried: dict[Path, float] = {}
        self._why = ""  # the reason why calls wait
        self.stored = 0

    def run(self, stopping: Event) -> None:
        """Store calls until `stopping` is set, and then store the calls that have ended."""
        while not stopping.is_set():
            is_well = self.store_waiting()
            stopping.wait(PAUSE if is_well else PAUSE_AFTER_AN_ERROR)
        self.store_waiting()

    def store_waiting(self) -> bool:
        """Store the waiting calls, oldest first. Return whether the database accepted them."""
        for path in spool.waiting(self._folder):
            try:
                self._store(path)
            except (DatabaseError, InterfaceError) as error:
                self._wait_for(error)
                return False
            except ChatMemoryError as error:
                if monotonic() - self._tried.setdefault(path, monotonic()) > GIVEN_UP_SECONDS:
                    self._put_aside(path, str(error))
            except Exception as error:  # a faulty call must not hold up the others
                logger.exception("a call cannot be stored")
                self._put_aside(path, type(error).__name__)
            self._why = ""
        return True

    def _wait_for(self, error: Exception) -> None:
        """Log once why calls wait, and open a new connection next time."""
        why = explain_error(error) or type(error).__name__
        if why != self._why:
            logger.warning("calls wait in %s: %s", self._folder, why)
        self._why = why
        with suppress(Exception):
            close_old_connections()

    def _store(self, path: Path) -> None:
        try:
            exchange = spool.read(path)
        except (ValueError, KeyError) as error:
            self._put_aside(path, str(error))
            return
        except OSError:  # it was renamed
            return
        call = spool.call_of(exchange)
        if call is None:
            count_dropped([Dropped(DropReason.UNREADABLE, Source.RECORDER)], self._prefix)
        else:
            self.stored += store(call, self._prefix, ACTOR).is_new
        path.unlink(missing_ok=True)
        self._tried.pop(path, None)

    def _put_aside(self, path: Path, why: str) -> None:
        logger.warning("the call in %s cannot be stored: %s", path.name, why)
        (self._folder / REFUSED).mkdir(mode=0o700, exist_ok=True)
        with suppress(OSError):
            path.rename(self._folder / REFUSED / path.name)
        self._tried.pop(path, None)
