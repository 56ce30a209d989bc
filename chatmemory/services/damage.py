"""What SQLite finds wrong with a file; who runs another database looks after its files."""

from __future__ import annotations

import sqlite3

from chatmemory import database

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


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
