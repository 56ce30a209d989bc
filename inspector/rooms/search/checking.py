"""SQLite's search index of messages: its check and its repair.

PostgreSQL searches the texts themselves (see `search`), so that nothing can be missing or wrong.
The words of an index row cannot be compared, because the index does not keep them.
"""

# ruff: noqa: S608 - the parts of the statements are constants of this file

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max

from chatmemory import database
from chatmemory.ledger.contradictions import Contradicted, LedgerCheck
from chatmemory.models import Message
from chatmemory.search import INDEXED_AT_ONCE, index_of, searched_characters
from inspector.rooms.search.sqlite import PUT_MESSAGES, PUT_NAMES

BATCH = 1_000

# The names of a conversation are message 0.
_SAID = """SELECT 0 AS seq UNION ALL
    SELECT seq FROM chatmemory_message WHERE memory_id = %s AND origin = 'SAID'"""
_INDEXED = """SELECT s.seq FROM chatmemory_search_places s
    JOIN chatmemory_search_docsize d ON d.id = s.id WHERE s.memory_id = %s"""
_MISSING = f"SELECT seq FROM ({_SAID} EXCEPT {_INDEXED}) ORDER BY seq = 0, seq LIMIT 1"
_WRONG = f"SELECT seq FROM ({_INDEXED} EXCEPT SELECT seq FROM ({_SAID})) ORDER BY seq LIMIT 1"


class IndexCheck(LedgerCheck):
    """The check of the index, which comes last: a gap in it hides no alteration."""

    def end(self) -> None:
        check_index(self.memory.pk)


def check_index(memory_id: str) -> None:
    """Raise Contradicted if the index lacks text of a conversation, or has text of no message."""
    missing, wrong = _first(_MISSING, memory_id), _first(_WRONG, memory_id)
    lacks = "missing in the search index: use --repair-index"
    if missing:
        raise Contradicted(f"message #{missing}", f"is {lacks}")
    if missing == 0:
        raise Contradicted("the conversation", f"its id and labels are {lacks}")
    if wrong is not None:
        was_not_said = "the search index has it, but it was not said: use --repair-index"
        raise Contradicted(f"message #{wrong}", was_not_said)


def repair(memory_id: str) -> int:
    """Put a conversation's names and messages into the index, and return how many were missing.

    A transaction indexes only a few characters, so that writers do not wait long. Text that a
    conversation never had can only be removed by building the whole index again, because its words
    are unknown.
    """
    if not _has_index():
        return 0
    if _first(_WRONG, memory_id) is not None:
        index_of(database.connection()).rebuild()
    repaired = _change(PUT_NAMES, [memory_id])
    last = Message.objects.filter(memory=memory_id).aggregate(last=Max("seq"))["last"] or 0
    for start in range(1, last + 1, BATCH):
        rows = Message.objects.filter(memory=memory_id, seq__range=(start, start + BATCH - 1))
        sizes = dict(rows.values_list("seq", searched_characters()))
        for part in filter(None, database.parts_of(sizes, INDEXED_AT_ONCE)):
            repaired += _change(PUT_MESSAGES, [memory_id, min(part), max(part)])
    return repaired


def _has_index() -> bool:
    return database.connection().vendor == "sqlite"


def _first(sql: str, memory_id: str) -> int | None:
    """Return the first message that a statement finds, or None."""
    if not _has_index():
        return None
    with database.connection().cursor() as cursor:
        cursor.execute(sql, [memory_id, memory_id])
        found = cursor.fetchone()
    return found[0] if found else None


def _change(statements: Sequence[str], values: Sequence[str | int]) -> int:
    """Execute statements as one transaction, and return the most rows that one of them changed."""
    with database.atomic(), database.connection().cursor() as cursor:
        counts: list[int] = []
        for statement in statements:
            cursor.execute(statement, values)
            counts.append(cursor.rowcount)
    return max(counts)
