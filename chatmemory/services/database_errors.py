"""When the database cannot do its work: what a caller is told, and when to try again.

Such errors are nobody's fault here and pass by themselves; what was under way was rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError

_BUSY = ("busy", "others are writing: try again in a moment")
_CROWDED = ("busy", "it takes no more connections: try again in a moment")
_FULL = ("full", "its disk is full: nothing can be stored until there is room")
_READ_ONLY = ("read-only", "it takes no writes now: try again later")
_NOT_MIGRATED = ("not migrated", "its tables are not there: run manage.py migrate")
_SLOW = ("slow", "it took too long: try again in a moment")
_DOWN = ("down", "it does not answer: try again in a moment")

# By the beginnings of SQLite's names, https://sqlite.org/rescode.html
_SQLITE = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_FULL": _FULL,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_INTERRUPT": _SLOW,
    "SQLITE_CANTOPEN": _DOWN,
    "SQLITE_IOERR": _DOWN,
    "SQLITE_PROTOCOL": _DOWN,
}
# By the beginnings of SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    "55P03": _BUSY,  # lock_not_available
    "40P01": _BUSY,  # deadlock_detected
    "53300": _CROWDED,  # too_many_connections
    "53100": _FULL,  # disk_full
    "25006": _READ_ONLY,  # read_only_sql_transaction
    "42P01": _NOT_MIGRATED,  # undefined_table
    "42703": _NOT_MIGRATED,  # undefined_column
    "57014": _SLOW,  # query_canceled
    "57P": _DOWN,  # admin_shutdown, crash_shutdown, cannot_connect_now
    "08": _DOWN,  # connection exceptions
}
RETRY_SECONDS = 2


@dataclass(frozen=True)
class Outage:
    """`state` in a word, `detail` for people."""

    state: str
    detail: str


def outage(error: BaseException | None) -> Outage | None:
    """What is the matter, if `error` means that the database cannot work now.

    An error that the database blames on a statement is none: the fault is ours.
    """
    if not isinstance(error, (DatabaseError, InterfaceError)):
        return None
    cause = error.__cause__
    if name := getattr(cause, "sqlite_errorname", None):
        return _by_beginning(_SQLITE, name) or _of_missing_table(error)
    if state := getattr(cause, "sqlstate", None):
        return _by_beginning(_POSTGRESQL, state)
    # No connection came about, or it was lost: nobody is left to give a code.
    return Outage(*_DOWN) if isinstance(error, (OperationalError, InterfaceError)) else None


def _by_beginning(known: Mapping[str, tuple[str, str]], code: str) -> Outage | None:
    found = next((said for start, said in known.items() if code.startswith(start)), None)
    return Outage(*found) if found else None


def _of_missing_table(error: BaseException) -> Outage | None:
    """SQLite has no code of its own for it."""
    words = str(error)
    is_missing = "no such table" in words or "no such column" in words
    return Outage(*_NOT_MIGRATED) if is_missing else None
