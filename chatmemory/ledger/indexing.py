"""Which messages the search index has, how they are put into it, and its repair.

SQLite has an index of its own (see `search`). PostgreSQL searches the texts themselves, so there
no message can be missing. The words of an index row cannot be compared: it does not keep them.
"""

# ruff: noqa: S608 - the parts of the statements are constants of this file and of `sqlite_tables`

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db.models import Max

from chatmemory import database
from chatmemory.ledger import sql
from chatmemory.ledger.contradictions import Contradicted
from chatmemory.ledger.sql import InsertedMessage, Write
from chatmemory.models import Message
from chatmemory.search.reading import beginning_of, searched_characters
from chatmemory.search.sqlite_tables import INDEXED_AT_ONCE, names_of

BATCH = 1_000
_BEHIND_ALL = 2**63

_PAUSE = Write("INSERT INTO chatmemory_index_pause DEFAULT VALUES", [()])
_RESUME = Write("DELETE FROM chatmemory_index_pause", [()])
_INDEXED = """SELECT s.seq FROM chatmemory_searchable s
    JOIN chatmemory_search_docsize d ON d.id = s.id WHERE s.memory_id = %s ORDER BY s.seq"""
_ADD_MESSAGES = (
    """INSERT OR IGNORE INTO chatmemory_searchable (memory_id, seq)
    SELECT memory_id, seq FROM chatmemory_message
    WHERE memory_id = %s AND seq BETWEEN %s AND %s AND origin = 'SAID'""",
    f"""INSERT INTO chatmemory_search (rowid, text) SELECT s.id, {beginning_of("m.text")}
    FROM chatmemory_searchable s
    JOIN chatmemory_message m ON m.memory_id = s.memory_id AND m.seq = s.seq
    WHERE s.memory_id = %s AND s.seq BETWEEN %s AND %s
    AND NOT EXISTS (SELECT 1 FROM chatmemory_search_docsize d WHERE d.id = s.id)""",
)
_ADD_NAMES = (
    "INSERT OR IGNORE INTO chatmemory_searchable (memory_id, seq) VALUES (%s, 0)",
    f"""INSERT INTO chatmemory_search (rowid, text) SELECT s.id, {names_of("m")}
    FROM chatmemory_searchable s JOIN chatmemory_memory m ON m.id = s.memory_id
    WHERE s.memory_id = %s AND s.seq = 0
    AND NOT EXISTS (SELECT 1 FROM chatmemory_search_docsize d WHERE d.id = s.id)""",
)


class IndexedMessages:
    """The check that the index has the names and the messages of a conversation."""

    def __init__(self, memory_id: str) -> None:
        self._seqs = _indexed(memory_id) if database.connection().vendor == "sqlite" else None
        self._next = -1
        self._has_names = self._has(0)
        self._missing: Message | None = None

    def look_for(self, message: Message) -> None:
        """Look for the next message of the history."""
        if self._missing is None and not self._has(message.seq):
            self._missing = message

    def check_end(self) -> None:
        """Raise Contradicted for what is missing."""
        missing = "missing in the search index: use --repair-index"
        if self._missing:
            raise Contradicted(self._missing, f"is {missing}")
        if not self._has_names:
            raise Contradicted("the conversation", f"its id and labels are {missing}")

    def _has(self, seq: int) -> bool:
        """Return whether the index has a seq, which is above those that were asked for before."""
        if self._seqs is None:
            return True
        while self._next < seq:
            self._next = next(self._seqs, _BEHIND_ALL)
        return self._next == seq


def insertion(memory_id: str, messages: Sequence[InsertedMessage]) -> list[Write]:
    """Return the insertion of new messages, and of several also that into SQLite's index.

    One statement takes a fifth of the time in which triggers put in each.
    """
    rows = sql.insertion(messages)
    if len(messages) < 2 or database.connection().vendor != "sqlite":
        return [rows]
    seqs = [message.seq for message in messages]
    part = (memory_id, min(seqs), max(seqs))
    return [_PAUSE, rows, *[Write(each, [part]) for each in _ADD_MESSAGES], _RESUME]


def repair(memory_id: str) -> int:
    """Put a conversation's names and messages into the index; return how many were missing there.

    Few characters are indexed in one transaction, so that writers do not wait long.
    """
    if database.connection().vendor != "sqlite":
        return 0
    repaired = _change(_ADD_NAMES, [memory_id])
    last = Message.objects.filter(memory=memory_id).aggregate(last=Max("seq"))["last"] or 0
    for start in range(1, last + 1, BATCH):
        rows = Message.objects.filter(memory=memory_id, seq__range=(start, start + BATCH - 1))
        sizes = dict(rows.values_list("seq", searched_characters()))
        for part in filter(None, database.parts_of(sizes, INDEXED_AT_ONCE)):
            repaired += _change(_ADD_MESSAGES, [memory_id, min(part), max(part)])
    return repaired


def _change(statements: Sequence[str], values: Sequence[str | int]) -> int:
    """Execute statements as one transaction, and return the most rows that one of them changed."""
    with database.atomic(), database.connection().cursor() as cursor:
        counts: list[int] = []
        for statement in statements:
            cursor.execute(statement, values)
            counts.append(cursor.rowcount)
    return max(counts)


def _indexed(memory_id: str) -> Iterator[int]:
    with database.connection().cursor() as cursor:
        cursor.execute(_INDEXED, [memory_id])
        for (seq,) in cursor:
            yield seq
