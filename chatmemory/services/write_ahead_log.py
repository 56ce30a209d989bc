"""SQLite's write-ahead log, which holds erased bytes until it is emptied.

SQLite cannot empty it while a reader needs it. Nobody waits for that: a thread tries again until it
succeeds. An erasure starts it, and so does the first connection of each process, because an earlier
process may have ended before its thread was done.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from chatmemory import database

RETRY_SECONDS = 1.0


def truncate_log(wait: float = 0) -> bool:
    """Empty the log, and return whether it is empty. Other databases have none.

    `wait` is for how many seconds to wait for readers.
    """
    return not _has_log() or _truncated(_file(), wait)


def truncate_log_soon() -> None:
    """Empty the log now, or as soon as no reader needs it."""
    if not truncate_log():
        retry.start(_file())


class Retry:
    """The threads of this process that try again, one for each file. Each opens a connection of its
    own for each try.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: set[str] = set()
        self._threads: dict[str, threading.Thread] = {}

    def thread_of(self, file: str) -> threading.Thread | None:
        """Return the thread that tries again to empty the log of a file, if there is one."""
        return self._threads.get(file)

    def start(self, file: str) -> None:
        with self._lock:
            self._wanted.add(file)
            if file not in self._threads:
                thread = threading.Thread(target=self._run, args=[file], daemon=True)
                self._threads[file] = thread
                thread.start()

    def _run(self, file: str) -> None:
        pause = threading.Event()
        while True:
            pause.wait(RETRY_SECONDS)
            self._wanted.discard(file)
            is_empty = _truncated(file)
            with self._lock:
                if is_empty and file not in self._wanted:
                    del self._threads[file]
                    return


retry = Retry()


def truncate_leftover_log() -> None:
    """Start a try for what an earlier process left in the log."""
    if _has_log():
        retry.start(_file())


def _has_log() -> bool:
    connection = database.connection()
    return connection.vendor == "sqlite" and not connection.is_in_memory_db()  # type: ignore[attr-defined]


def _file() -> str:
    return str(database.connection().settings_dict["NAME"])


def _truncated(file: str, wait: float = 0) -> bool:
    """Return whether the log is empty now; also true where there is no database any more."""
    path = Path(file).absolute()
    if not path.exists():
        return True
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", timeout=wait, uri=True)) as opened:
            (is_busy, *_) = opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error:
        return False
    return not is_busy
