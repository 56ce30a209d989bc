"""The SQL statements of adds and reads, for SQLite and PostgreSQL.

For these small statements, Django's ORM takes several times as long as the database. Less frequent
statements use the ORM. Each statement has the id of one conversation, so that a database cluster
sends the statement to one node.

Opening a cursor takes as long as a short statement. So a transaction passes its cursor to the
functions that it calls. Each cursor is closed after its use, because an open cursor keeps SQLite's
file open.
"""

# ruff: noqa: S608 - the parts of the statements are constants of this file

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf
from typing import NamedTuple

from django.db.backends.utils import CursorWrapper

from chatmemory import database
from chatmemory.messages.json_values import JsonDict
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.tables import NamedRow, SqlRow, SqlValue, Table, Values, execute_rows

COPIED = 20  # rows; from this number on, COPY is faster than INSERT on PostgreSQL
HEAD_PAGE = 8  # stays; most adds need two or three


# The columns of a stay that entries need
STAY = ("n", "seq", "rank", "type", "has_calls", "tokens", "pinned", "size", "overrides")


# Wide: a row of one SELECT, with a field for each column, in the order of the columns.
class WindowMessage(NamedTuple):
    """A message in a window, with columns of its stay, of the message and of the conversation.

    Of the stay:

    - `n`, `rank`: the number of the stay, and the number that orders the window.
    - `size`: the length of the message's JSON in bytes.
    - `overrides`: JSON of the text or the attributes that the window shows instead of the stored
      ones, or None.

    Of the message:

    - `seq`: the number of the message.
    - `frame`: the JSON of the message without its text.
    - `attributes`: the attributes of a system message as JSON, or None.
    - `redacted_step`: the step that redacted the message, or None.

    Of the conversation: `estimator` is the name of its estimator.
    """

    n: int
    seq: int
    rank: int
    type: str
    has_calls: bool
    tokens: int
    pinned: bool
    size: int
    overrides: str | None
    memory_id: str
    frame: str
    text: str
    attributes: str | None
    redacted_step: int | None
    estimator: str


# On SQLite, Django fills in a few names faster than it searches a long statement for each "%s".
_OPEN = "s.memory_id = %(id)s AND s.left_step IS NULL ORDER BY s.rank"
# As `windows.stays_at`, which explains the bounds
_OPEN_AT = """s.memory_id = %(id)s AND s.entered_step <= %(at)s
    AND (s.left_step IS NULL OR s.left_step > %(at)s)
    AND ((s.n >= %(oldest)s AND s.n <= %(last)s)
        OR (s.n < %(oldest)s AND (s.type = 'SYSTEM' OR s.pinned)))
    ORDER BY s.rank"""
_STAY = ", ".join(f"s.{name}" for name in STAY)
_FIRST_STAYS = f"SELECT {_STAY} FROM chatmemory_stay s WHERE {_OPEN} LIMIT {HEAD_PAGE}"
# The window of a conversation that is being deleted is empty.
_WINDOW = f"""SELECT {_STAY},
    s.memory_id, m.frame, m.text, m.attributes, m.redacted_step, c.policy_estimator
    FROM chatmemory_stay s
    JOIN chatmemory_message m ON m.memory_id = s.memory_id AND m.seq = s.seq
    JOIN chatmemory_memory c ON c.id = s.memory_id AND c.deleted_at IS NULL
    WHERE """
_END_STAYS = """UPDATE chatmemory_stay SET left_step = %(step)s, reason = %(reason)s
    WHERE memory_id = %(id)s AND n BETWEEN %(first)s AND %(last)s"""


_MEMORIES, _STEPS = Table(Memory), Table(Step)
_MESSAGES, _STAYS = Table(Message), Table(Stay)
_FRAMED = Table(Message, only=("memory_id", "seq", "frame", "text", "attributes"))
_FRAMES = Table(Message, only=("seq", "frame"))
_NEWEST_DETAIL = """SELECT detail FROM chatmemory_auditentry
    WHERE memory_id = %(id)s AND action = %(action)s ORDER BY at DESC, id DESC LIMIT 1"""

# All columns of a conversation's row
values_of = _MEMORIES.values


# Reading


def read_memory(
    memory_id: str, lock: bool = False, cursor: CursorWrapper | None = None
) -> Memory | None:
    """Return the row of a conversation. None if it does not exist, or is being deleted.

    With `lock`, the row is locked until the transaction ends. On SQLite, the transaction has
    already locked the whole database.
    """
    with _given_or_new(cursor) as cursor:
        locking = " FOR UPDATE" if lock and cursor.db.vendor != "sqlite" else ""
        return _MEMORIES.read(cursor, f"id = %(id)s AND deleted_at IS NULL{locking}", id=memory_id)


def read_step(memory_id: str, n: int) -> Step | None:
    """Return step `n` of a conversation, or None if it does not exist."""
    with database.cursor() as cursor:
        return _STEPS.read(cursor, "memory_id = %(id)s AND n = %(n)s", id=memory_id, n=n)


def first_stays(memory_id: str, cursor: CursorWrapper | None = None) -> list[SqlRow]:
    """Return the first stays of the current window in order, at most `HEAD_PAGE`, with the columns
    `STAY`.
    """
    return rows(_FIRST_STAYS, {"id": memory_id}, cursor)


def window_messages(memory_id: str, step: Step | None = None) -> list[WindowMessage]:
    """Return the messages of the current window, in order. With `step`, return the messages of the
    window after that step instead.
    """
    return [WindowMessage._make(row) for row in rows(*_of_window(_WINDOW, memory_id, step))]


def window_stays(memory_id: str, columns: Sequence[str], step: Step | None = None) -> list[SqlRow]:
    """Return the values of `columns` for the stays of the current window, in order. With `step`,
    read the stays of the window after that step instead.
    """
    select = f"SELECT {', '.join(columns)} FROM chatmemory_stay s WHERE "
    return rows(*_of_window(select, memory_id, step))


def _of_window(select: str, memory_id: str, step: Step | None) -> tuple[str, Values]:
    """Return a statement about the stays of a window, and its values: of the current window, or
    with `step`, of the window after that step.
    """
    if step is None:
        return select + _OPEN, {"id": memory_id}
    bounds = {"at": step.n, "oldest": step.oldest, "last": step.last_stay}
    return select + _OPEN_AT, {"id": memory_id, **bounds}


def messages_by_seq(memory_id: str, seqs: Iterable[int]) -> list[NamedRow]:
    """Return the stored rows of messages, in any order. `windows.read_message` converts a row to a
    message.
    """
    return _FRAMED.read_rows(*_with_seqs(memory_id, seqs))


def frames_by_seq(memory_id: str, seqs: Iterable[int]) -> dict[int, str]:
    """Return the frames of messages by seq. A frame is the JSON of a message without its text."""
    return dict(_FRAMES.read_rows(*_with_seqs(memory_id, seqs)))


def _with_seqs(memory_id: str, seqs: Iterable[int]) -> tuple[str, Values]:
    """Return the SQL condition for these messages of a conversation, and its values."""
    is_on_server = database.connection().vendor == "postgresql"
    listed = "= ANY(%(seqs)s)" if is_on_server else "IN (SELECT value FROM json_each(%(seqs)s))"
    values = {"id": memory_id, "seqs": database.list_parameter(seqs)}
    return f"memory_id = %(id)s AND seq {listed}", values


def estimator_and_count(memory_id: str) -> tuple[str, int] | None:
    """Return the name of a conversation's estimator, and the number of messages in its window. None
    for an unknown id.
    """
    found = rows(
        "SELECT policy_estimator, window_count FROM chatmemory_memory "
        "WHERE id = %(id)s AND deleted_at IS NULL",
        {"id": memory_id},
    )
    return next(iter(found), None)


def newest_detail(memory_id: str, action: str) -> JsonDict:
    """Return the details of a conversation's newest audit entry with this action. Returns {} if
    there is none.
    """
    for (detail,) in rows(_NEWEST_DETAIL, {"id": memory_id, "action": str(action)}):
        found: JsonDict = json.loads(detail)
        return found
    return {}


def rows(sql: str, values: Values, cursor: CursorWrapper | None = None) -> list[SqlRow]:
    """Run a query with these values, and return all its rows."""
    with _given_or_new(cursor) as cursor:
        cursor.execute(sql, values)
        found: list[SqlRow] = cursor.fetchall()
        return found


def _given_or_new(cursor: CursorWrapper | None) -> AbstractContextManager[CursorWrapper]:
    """Return a context with the given cursor, which its transaction closes, or with a new cursor,
    which the context closes.
    """
    return nullcontext(cursor) if cursor else database.cursor()


# Writing


def insert_if_new(memory: Memory, cursor: CursorWrapper | None = None) -> bool:
    """Insert the row of a conversation. Returns False if its id is taken.

    After the insert, the row is locked until the transaction ends, and Django treats `memory` as
    saved.
    """
    with _given_or_new(cursor) as cursor:
        db = cursor.db
        cursor.execute(f"{_MEMORIES.insert} ON CONFLICT DO NOTHING", _MEMORIES.stored(memory, db))
        is_new: bool = cursor.rowcount == 1
    if is_new:
        memory._state.adding, memory._state.db = False, db.alias
    return is_new


def write(
    memory: Memory,
    before: Sequence[object],
    ended: Mapping[int, tuple[int, str]],
    *,
    messages: Collection[object] = (),
    stays: Collection[object] = (),
    steps: Collection[object] = (),
    cursor: CursorWrapper | None = None,
) -> None:
    """Write the changed columns of a conversation's row, the ends of stays, and new rows.

    `before` has the former values of all columns of the conversation's row. `ended` maps the number
    of a stay to the step at which the stay ends, and the reason.

    The conversation's row is written after the other rows: on SQLite, a trigger on this row indexes
    the new messages. But on PostgreSQL, `COPIED` or more new rows of one table are written after
    the conversation's row, by COPY. Foreign keys are checked on commit.
    """
    with _given_or_new(cursor) as cursor:
        db, is_piped = cursor.db, cursor.db.vendor == "postgresql"
        new = ((_MESSAGES, messages), (_STAYS, stays), (_STEPS, steps))
        most = COPIED if is_piped else inf
        # PostgreSQL answers the statements of a pipeline together, at its end
        with db.wrap_database_errors, db.connection.pipeline() if is_piped else nullcontext():
            for table, rows in new:
                if len(rows) < most:
                    execute_rows(cursor, table.insert, [table.stored(row, db) for row in rows])
            execute_rows(cursor, _END_STAYS, _endings(memory.id, ended))
            # SQLite rewrites the index entry of every column that is set, even to the same value
            if changed := _MEMORIES.changed(memory, before, db):
                pairs = ", ".join([f"{name} = %({name})s" for name in changed])
                statement = f"UPDATE chatmemory_memory SET {pairs} WHERE id = %(id)s"
                cursor.execute(statement, {**changed, "id": memory.id})
        for table, rows in new:
            if len(rows) >= most:
                with db.wrap_database_errors, cursor.copy(table.copy) as copy:
                    for row in rows:
                        copy.write_row(table.stored(row, db))


def _endings(memory_id: str, ended: Mapping[int, tuple[int, str]]) -> list[dict[str, SqlValue]]:
    """Return the values for `_END_STAYS`. Stays with consecutive numbers and the same end are ended
    by one statement.
    """
    runs: list[dict[str, SqlValue]] = []
    for n in sorted(ended):
        step, reason = ended[n]
        last = runs[-1] if runs else {}
        if last.get("last") == n - 1 and (last["step"], last["reason"]) == (step, reason):
            last["last"] = n
        else:
            runs.append({"id": memory_id, "step": step, "reason": reason, "first": n, "last": n})
    return runs
