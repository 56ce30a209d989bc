"""Reads and writes the rows of model calls by plain SQL, which is faster than Django's ORM."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.backends.utils import CursorWrapper

from chatmemory import database
from chatmemory.ledger import sql
from chatmemory.tables import Table
from inspector.rooms.calls.models import CallEnd, CallRun, ModelCall

_CALLS, _RUNS, _ENDS = Table(ModelCall), Table(CallRun), Table(CallEnd)
_WITHOUT_BODIES = Table(ModelCall, only={*_CALLS.names} - {"difference", "response"})


def place_of(key: str) -> tuple[str, int] | None:
    """Return the conversation ID and the number of the stored call that `key` identifies (see
    `key_of`). None if there is no such call.
    """
    statement = "SELECT memory_id, n FROM chatmemory_calls_modelcall WHERE key = %s LIMIT 1"
    return next(iter(sql.rows(statement, [key])), None)


def newest_without_bodies(memory_id: str, size: int) -> list[ModelCall]:
    """Return up to `size` calls of a conversation, the newest first. Their columns `difference` and
    `response` are not read until they are used.
    """
    condition = "memory_id = %(id)s ORDER BY at DESC, n DESC LIMIT %(size)s"
    return _WITHOUT_BODIES.read_all(condition, {"id": memory_id, "size": size})


def number_of(memory_id: str, key: str, cursor: CursorWrapper) -> int | None:
    """Return the number of the conversation's call that `key` identifies (see `key_of`). None if
    there is no such call.
    """
    statement = "SELECT n FROM chatmemory_calls_modelcall WHERE memory_id = %s AND key = %s"
    return next((n for (n,) in sql.rows(statement, [memory_id, key], cursor)), None)


def run_of(memory_id: str, cursor: CursorWrapper) -> CallRun | None:
    """Return the row about the calls of a conversation (see `CallRun`); None before the first
    call.
    """
    return _RUNS.read(cursor, "memory_id = %(id)s", id=memory_id)


def keep_last_step(memory_id: str, prefix: str, last_step: int) -> None:
    """Store the number of the last step that calls have written to a conversation.

    If the conversation has no row about its calls yet, the new row also gets `prefix`: the
    beginning of all IDs that the API token of the calls can reach.
    """
    with database.cursor() as cursor:
        statement = "UPDATE chatmemory_calls_callrun SET last_step = %s WHERE memory_id = %s"
        cursor.execute(statement, [last_step, memory_id])
        if not cursor.rowcount:
            row = CallRun(memory_id=memory_id, prefix=prefix, last_step=last_step)
            _RUNS.add([row], cursor)


def save_run(run: CallRun, cursor: CursorWrapper) -> None:
    _RUNS.save(run, cursor)


def insert_call(row: ModelCall, cursor: CursorWrapper) -> None:
    _CALLS.add([row], cursor)


def replace_ends(memory_id: str, ends: Iterable[CallEnd], cursor: CursorWrapper) -> None:
    """Replace the digests by which the next call finds a conversation (see `CallEnd`)."""
    statement = "DELETE FROM chatmemory_calls_callend WHERE memory_id = %s"
    cursor.execute(statement, [memory_id])
    _ENDS.add(ends, cursor)
