"""Looks after the files of a SQLite database: finds damage, and empties the write-ahead log.

Each commit waits until the write-ahead log is on the disk. With `synced_once`, many commits share a
single wait.

Erased texts stay in the write-ahead log until the log is emptied. Each erasure tries to empty the
log. If a reader still needs the log, a thread of each server tries again, and so does `manage.py
vacuum`.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from chatmemory import database

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
EMPTIED: set[str] = set()  # files whose logs, as far as this process knows, have no erased bytes

logger = logging.getLogger(__name__)


# Damage


def damage() -> str | None:
    """Return the first sign of damage in the database file of SQLite. None if the file has no
    damage, or if the database is not SQLite. Reads the whole file.
    """
    connection = database.connection()
    if connection.vendor != "sqlite":
        return None
    connection.ensure_connection()
    return damage_of(connection.connection)


def damage_of(opened: sqlite3.Connection) -> str | None:
    """Return the first sign of damage in a SQLite file, or None. Raises sqlite3.Error if the check
    fails for a reason other than damage.
    """
    try:
        (found,) = opened.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return str(error)
        raise
    return None if found == "ok" else str(found).splitlines()[-1]


def is_damage(error: BaseException | None) -> bool:
    """Return whether an error of SQLite says that the database file is damaged."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


# The write-ahead log


def try_to_empty_log(wait: float = 0) -> bool:
    """Empty SQLite's write-ahead log, and return whether it is empty. Returns True for other
    databases, which have no such log.

    Waits up to `wait` seconds for readers.
    """
    file = _logged_file()
    if file is None:
        return True
    is_empty = _truncated(file, wait)
    (EMPTIED.add if is_empty else EMPTIED.discard)(file)
    return is_empty


def empty_log_after_erasure() -> None:
    """Empty SQLite's write-ahead log without waiting for readers. If the log cannot be emptied now,
    log a warning.
    """
    if not try_to_empty_log():
        logger.warning(
            "a reader needs SQLite's write-ahead log, which still has erased data: it is emptied "
            "later by a server, or by manage.py vacuum"
        )


def empty_leftover_log() -> None:
    """Try to empty SQLite's write-ahead log, which may still have erased bytes. Do nothing if the
    last try of this process emptied the log.
    """
    if _logged_file() not in EMPTIED:
        try_to_empty_log()


@contextmanager
def synced_once() -> Iterator[None]:
    """Let all commits of this thread in a block wait for the disk only once, at the end of the
    block. For SQLite only.

    A power failure before the end may undo the last commits. If it undoes a commit, it also undoes
    all commits after it.
    """
    file = _logged_file()
    if file is None or not _has_log():
        yield
        return
    with database.cursor() as cursor:
        (mode,) = cursor.execute("PRAGMA synchronous").fetchone()
        cursor.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        with database.cursor() as cursor:
            cursor.execute(f"PRAGMA synchronous = {int(mode)}")
        _sync(f"{file}-wal")


def _has_log() -> bool:
    with database.cursor() as cursor:
        (mode,) = cursor.execute("PRAGMA journal_mode").fetchone()
        return bool(mode == "wal")


def _sync(file: str) -> None:
    with suppress(FileNotFoundError):  # then all of the log is in the database
        number = os.open(file, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _logged_file() -> str | None:
    """Return the file of the database. None if it has no SQLite write-ahead log."""
    connection = database.connection()
    if connection.vendor != "sqlite" or connection.is_in_memory_db():  # type: ignore[attr-defined]  # only a backend has it, not its base class
        return None
    return str(connection.settings_dict["NAME"])


def _truncated(file: str, wait: float = 0) -> bool:
    """Empty the log of a file, and return whether it is empty. True if the file does not exist."""
    path = Path(file).absolute()
    if not path.exists():
        return True
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", timeout=wait, uri=True)) as opened:
            (is_busy, *_) = opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error:
        return False
    return not is_busy
