"""Stores the calls of the spool in the database. A file stays until its call is stored."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    close_old_connections,
    connections,
)

from chatmemory.database_errors import explain_error
from chatmemory.exceptions import ChatMemoryError
from chatmemory.sqlite_files import synced_once
from inspector.rooms.calls.call import Dropped, DropReason, NewCall
from inspector.rooms.calls.writes import count_dropped, count_no_more, store
from inspector.rooms.recorder import spool

ACTOR = "recorder"
PAUSE, PAUSE_AFTER_AN_ERROR = 0.1, 1.0
BATCH = 200  # files that are stored between two looks at the folder
TOGETHER = 20  # files that stay until all their calls are safe from a power failure
GIVEN_UP_SECONDS = 600  # after which a call that cannot be stored is put aside
REFUSED = "refused"

logger = logging.getLogger(__name__)


class Storing:
    """Stores the calls of a spool folder, and waits while the database is down."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix
        self._stopping = Event()
        self._tried: dict[Path, float] = {}
        self._why = ""  # the reason why calls wait
        self.stored = 0

    def run(self) -> None:
        """Store arriving calls until `stop` is called."""
        try:
            while not self._stopping.is_set():
                is_well = self.store_waiting()
                self._stopping.wait(PAUSE if is_well else PAUSE_AFTER_AN_ERROR)
        finally:
            connections.close_all()

    def stop(self) -> None:
        """Let `run` end after the call that is being stored. All others are stored at the next
        start.
        """
        self._stopping.set()

    def store_waiting(self) -> bool:
        """Store the waiting calls, oldest first. Return False if the database is down."""
        left: set[Path] = set()  # those that wait for another time
        while not self._stopping.is_set():
            found = spool.waiting(self._folder, BATCH + len(left))
            paths = [path for path in found if path not in left]
            if not paths:
                break
            try:
                left |= self._store_batch(paths)
            except (DatabaseError, InterfaceError) as error:
                self._wait_for(error)
                return False
            self._why = ""
        return True

    def _store_batch(self, paths: Sequence[Path]) -> set[Path]:
        """Store calls until `stop`, and count those that are dropped. Return the files that stay.

        Raises DatabaseError.
        """
        left: set[Path] = set()
        for start in range(0, len(paths), TOGETHER):
            found: dict[Path, NewCall | Dropped] = {}
            try:
                with synced_once():
                    for path in paths[start : start + TOGETHER]:
                        if self._stopping.is_set():
                            break
                        if result := self._stored(path):
                            found[path] = result
                        else:
                            left.add(path)
            finally:
                self._end(found)
        return left

    def _stored(self, path: Path) -> NewCall | Dropped | None:
        """Store the call of a file. Return the call, or the reason why it is dropped; None if the
        file stays. Raises DatabaseError.
        """
        try:
            call = spool.call_of(spool.read(path))
            if isinstance(call, NewCall):
                self.stored += store(call, self._prefix, ACTOR).is_new
            return call
        except FileNotFoundError:  # it was renamed
            return None
        except ChatMemoryError as error:
            began = self._tried.setdefault(path, monotonic())
            return self._refused(path, error) if monotonic() - began > GIVEN_UP_SECONDS else None
        except (DataError, IntegrityError) as error:  # of this call, not of the database
            return self._refused(path, error)
        except (DatabaseError, InterfaceError):
            raise
        except Exception as error:  # a faulty call must not hold up the others
            logger.exception("a call cannot be stored")
            return self._refused(path, error)

    def _refused(self, path: Path, error: Exception) -> Dropped:
        logger.warning("the call in %s cannot be stored: %s", path.name, type(error).__name__)
        return Dropped(DropReason.REFUSED, type(error).__name__, spool.key_of(path.stem))

    def _end(self, found: Mapping[Path, NewCall | Dropped]) -> None:
        """Count dropped calls, and then remove the files, or put those of refused calls aside."""
        dropped = {path: each for path, each in found.items() if isinstance(each, Dropped)}
        counts = Counter(each for each in dropped.values() if not each.key)
        once = [each for each in dropped.values() if each.key]
        many = [each._replace(count=each.count * n) for each, n in counts.items()]
        if once or many:
            count_dropped([*once, *many], self._prefix)
        for path, each in found.items():
            with suppress(OSError):
                if isinstance(each, Dropped) and each.why is DropReason.REFUSED:
                    (self._folder / REFUSED).mkdir(mode=0o700, exist_ok=True)
                    path.rename(self._folder / REFUSED / path.name)
                else:
                    path.unlink()
            self._tried.pop(path, None)
        if stored := [each for each in found.values() if isinstance(each, NewCall)]:
            count_no_more(stored, self._prefix)  # those that had been put aside

    def _wait_for(self, error: Exception) -> None:
        """Log once why calls wait, and open a new connection next time."""
        why = explain_error(error) or type(error).__name__
        if why != self._why:
            logger.warning("calls wait in %s: %s", self._folder, why)
        self._why = why
        with suppress(Exception):
            close_old_connections()
