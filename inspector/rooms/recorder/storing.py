"""Stores the calls of the spool (the folder of recorded calls) in the database. A file stays in the
spool until its calls are in the database.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    """Stores the calls of a spool folder in the database. While the database is down, the calls
    wait.
    """

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self._folder, self._prefix = folder, prefix
        self._stopping = Event()
        self._tried: dict[str, float] = {}
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
        """Let `run` return after the call that is being stored. The other calls stay in the spool,
        and are stored at the next start.
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
        """Store the calls of files until `stop` is called. Count the calls that cannot be stored.
        Return the files to keep.

        Raises DatabaseError.
        """
        left: set[Path] = set()
        for start in range(0, len(paths), TOGETHER):
            found: dict[Path, Sequence[NewCall | Dropped]] = {}
            try:
                with synced_once():
                    for path in paths[start : start + TOGETHER]:
                        if self._stopping.is_set():
                            break
                        calls = [*self._stored_of(path)]
                        if None in calls:
                            left.add(path)
                        else:
                            found[path] = [each for each in calls if each]
            finally:
                self._end(found)
        return left

    def _stored_of(self, path: Path) -> Iterator[NewCall | Dropped | None]:
        """Store the calls of a file until `stop` is called. Yield for each call what `_stored`
        returns. Calls that are stored already are skipped.
        """
        try:
            calls = spool.read(path)
        except FileNotFoundError:  # it was renamed
            yield None
        else:
            for each in calls:
                yield None if self._stopping.is_set() else self._stored(each)

    def _stored(self, waiting: spool.CallFrames) -> NewCall | Dropped | None:
        """Store a call, and return it. Return the reason if it cannot be stored, and None if it
        must wait. Raises DatabaseError.
        """
        try:
            call = spool.call_of(spool.exchange_of(waiting))
            if isinstance(call, NewCall):
                self.stored += store(call, self._prefix, ACTOR).is_new
            self._tried.pop(waiting.name, None)
            return call
        except ChatMemoryError as error:
            began = self._tried.setdefault(waiting.name, monotonic())
            is_over = monotonic() - began > GIVEN_UP_SECONDS
            return self._refused(waiting, error) if is_over else None
        except (DataError, IntegrityError) as error:  # of this call, not of the database
            return self._refused(waiting, error)
        except (DatabaseError, InterfaceError):
            raise
        except Exception as error:  # a faulty call must not hold up the others
            logger.exception("a recorded call cannot be stored")
            return self._refused(waiting, error)

    def _refused(self, call: spool.CallFrames, error: Exception) -> Dropped | None:
        """Move a call that the database does not accept to a file of its own. Return None if there
        is no space for the file: then the call waits.
        """
        logger.warning("the recorded call %s cannot be stored: %s", call.name, type(error).__name__)
        folder = self._folder / REFUSED
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / f"{call.name}.call").write_bytes(call.data)
        except OSError:
            return None
        self._tried.pop(call.name, None)
        return Dropped(DropReason.REFUSED, type(error).__name__, spool.key_of(call.name))

    def _end(self, found: Mapping[Path, Sequence[NewCall | Dropped]]) -> None:
        """Count the calls that could not be stored, and remove the files."""
        calls = [each for some in found.values() for each in some]
        dropped = [each for each in calls if isinstance(each, Dropped)]
        counts = Counter(each for each in dropped if not each.key)
        once = [each for each in dropped if each.key]
        many = [each._replace(count=each.count * n) for each, n in counts.items()]
        if once or many:
            count_dropped([*once, *many], self._prefix)
        for path in found:
            with suppress(OSError):
                path.unlink()
        if stored := [each for each in calls if isinstance(each, NewCall)]:
            count_no_more(stored, self._prefix)  # those that had been put aside

    def _wait_for(self, error: Exception) -> None:
        """Log once why calls wait. The next try uses a new database connection."""
        why = explain_error(error) or type(error).__name__
        if why != self._why:
            logger.warning(
                "recorded calls wait in the folder %s, because the database cannot be used: %s",
                self._folder,
                why,
            )
        self._why = why
        with suppress(Exception):
            close_old_connections()
