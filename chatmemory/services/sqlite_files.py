"""The files of a SQLite database: damage to them, and the write-ahead log.

The log holds erased bytes until it is emptied, which SQLite cannot do while a reader needs it.
Nobody waits for that: a thread tries again until it succeeds. An erasure starts it, and so does the
first connection of each process, because an earlier process may have ended before its thread was
done. Administrators of another database look after its files.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from time import sleep

from chatmemory import database

RETRY_SECONDS = 1.0
retrying: dict[str, threading.Thread] = {}  # by file, those of this process
_turn = threading.Lock()
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


# Damage


def damage() -> str | None:
    """Return what is wrong with the database's file, which is read as a whole; None if nothing."""
    connection = database.connection()
    if connection.vendor != "sqlite":
        return None
    connection.ensure_connection()
    return damage_of(connection.connection)


def damage_of(opened: sqlite3.Connection) -> str | None:
    """Return what is wrong with a file; None if nothing. Raises sqlite3.Error if it is not read."""
    try:
        (found,) = opened.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return str(error)
        raise
    return None if found == "ok" else str(found).splitlines()[-1]


def is_damage(error: BaseException | None) -> bool:
    """Return whether SQLite reports a damaged file by an error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


# The write-ahead log


def truncate_log(wait: float = 0) -> bool:
    """Empty the log, and return whether it is empty. Other databases have none.

    `wait` is for how many seconds to wait for readers.
    """
    file = _logged_file()
    return file is None or _truncated(file, wait)


def truncate_log_soon() -> None:
    """Empty the log now, or as soon as no reader needs it."""
    if not truncate_log():
        truncate_leftover_log()


def truncate_leftover_log() -> None:
    """Start a thread that empties the log, such as that of an earlier process."""
    if file := _logged_file():
        retry(file)


def retry(file: str) -> None:
    """Start the thread that tries again to empty the log of a file, unless there is one."""
    with _turn:
        if file not in retrying:
            retrying[file] = threading.Thread(target=_try_again, args=[file], daemon=True)
            retrying[file].start()


def _try_again(file: str) -> None:
    """Try until it succeeds, each time with a connection of its own."""
    while True:
        sleep(RETRY_SECONDS)
        with _turn:  # who comes meanwhile starts another thread
            if _truncated(file):
                del retrying[file]
                return


def _logged_file() -> str | None:
    """Return the file of the database, None if that has no log of SQLite."""
    connection = database.connection()
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]
        return None
    return str(connection.settings_dict["NAME"])


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
