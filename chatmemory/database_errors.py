"""Recognizes outages of the database: errors that the request did not cause, and that may end by
themselves.

After an outage the caller can repeat the request, because its transaction was rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError

from chatmemory import database
from chatmemory.patterns import declared_pattern
from chatmemory.sqlite_files import is_damage


@dataclass(frozen=True)
class Outage:
    """An outage of the database.

    - `state`: the state of the database in a few words, such as "busy", "down" or "not migrated".
    - `detail`: what happened and what to do, such as "the query took too long: try again in a
      moment".
    - `is_of_node`: whether the database responds, but a node of its cluster does not.
    """

    state: str
    detail: str
    is_of_node: bool = False

    def __str__(self) -> str:
        return f"the database is {self.state}: {self.detail}"


_BUSY = Outage("busy", "other clients are writing: try again in a moment")
_CROWDED = Outage("busy", "there are too many connections: try again in a moment")
_FULL = Outage("full", "the disk is full: nothing can be stored until there is space")
_READ_ONLY = Outage("read-only", "nothing can be written at present: try again later")
_NOT_MIGRATED = Outage(
    "not migrated",
    "a table or column is missing: run manage.py migrate, or chatmemory migrate",
)
_SLOW = Outage("slow", "the query took too long: try again in a moment")
_CLOSED = Outage(
    "down", "its file cannot be opened: check that its folder exists and can be written"
)
_POOLED = Outage(
    "behind PgBouncer in transaction mode",
    "use session mode: set pool_mode = session in pgbouncer.ini",
)
_DOWN = Outage("down", "it does not respond: try again in a moment")
_NODE_DOWN = Outage("down", "a node of its cluster does not respond", is_of_node=True)

# Prefixes of SQLite's error names, https://sqlite.org/rescode.html
_SQLITE = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_FULL": _FULL,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_INTERRUPT": _SLOW,
    "SQLITE_CANTOPEN": _CLOSED,
    "SQLITE_IOERR_SHMSIZE": _FULL,  # the file that connections share
    "SQLITE_IOERR": _DOWN,
    "SQLITE_PROTOCOL": _DOWN,
}
# Prefixes of SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    "55P03": _BUSY,  # lock_not_available
    "40P01": _BUSY,  # deadlock_detected
    "53300": _CROWDED,  # too_many_connections
    "53100": _FULL,  # disk_full
    "25006": _READ_ONLY,  # read_only_sql_transaction
    "42P01": _NOT_MIGRATED,  # undefined_table
    "42703": _NOT_MIGRATED,  # undefined_column
    "42P03": _POOLED,  # duplicate_cursor: another connection of the pool has one of this name
    "34000": _POOLED,  # invalid_cursor_name: the cursor is in another session
    "57014": _SLOW,  # query_canceled
    "57P": _DOWN,  # admin_shutdown, crash_shutdown, cannot_connect_now
    "08": _NODE_DOWN,  # connection exceptions that a server reports: it has lost another one
}
# Citus has no code for a node that ends while it executes a command.
_INTERNAL = "XX000"
_NO_SUCH = declared_pattern("no such (table|column)")
_NODE_LOST = declared_pattern(
    "closed the connection|SSL SYSCALL|connection not open|could not (send|receive) data"
    "|failure on connection"
)
RETRY_SECONDS = 2


def outage(error: BaseException | None) -> Outage | None:
    """Return the outage that an error reports; None for any other error, such as a bug of this
    program.
    """
    if not isinstance(error, (DatabaseError, InterfaceError)):
        return None
    cause = error.__cause__
    if name := getattr(cause, "sqlite_errorname", None):
        if _NO_SUCH.search(str(error)):  # SQLite has no code for these
            return _NOT_MIGRATED
        return next((found for code, found in _SQLITE.items() if name.startswith(code)), None)
    if state := getattr(cause, "sqlstate", None):
        if state == _INTERNAL and _NODE_LOST.search(str(error)):
            return _NODE_DOWN
        return next((found for code, found in _POSTGRESQL.items() if state.startswith(code)), None)
    # There is no code if the connection failed or was lost.
    return _DOWN if isinstance(error, (OperationalError, InterfaceError)) else None


@contextmanager
def leaving_out_lost_nodes() -> Iterator[None]:
    """Run the block in a transaction. If the database or a node of its cluster is down, roll back
    and go on after the block.

    Other errors are raised.
    """
    try:
        with database.atomic():
            yield
    except (DatabaseError, InterfaceError) as error:
        found = outage(error)
        if found is None or found.state != "down":
            raise


def explain_error(error: BaseException) -> str | None:
    """Return the text that a command prints for an outage or a damaged database; None for any other
    error.

    The text has the driver's explanation, without a password.
    """
    if is_damage(error.__cause__):
        return f"the database is damaged: {error}: restore a backup"
    found = outage(error)
    if found is not None and found.state == "down":
        found = Outage(found.state, database.refusal() or str(error))
    if found is _NOT_MIGRATED:
        found = Outage(f"not migrated ({database.described()})", found.detail)
    return str(found) if found else None
