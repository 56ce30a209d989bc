"""Checks SQLite's search index while a ledger is verified.

The check finds messages that the index lacks, and messages that only the index has. It does not
compare words, because the index does not store the texts. PostgreSQL needs no check, because
PostgreSQL itself updates its index.
"""

from __future__ import annotations

from chatmemory import search
from chatmemory.contradictions import Contradicted, LedgerCheck
from inspector.rooms.search.sqlite import SqliteIndex


class IndexCheck(LedgerCheck):
    """Checks the search index of a conversation while its ledger is verified.

    This check comes last. Verification stops at the first error, and an altered row is more
    important than a gap in the index.
    """

    def end(self) -> None:
        check_index(self.memory.pk)


def check_index(memory_id: str) -> None:
    """Raise Contradicted if the index lacks a message of a conversation, or has a message that is
    not in history. Do nothing on PostgreSQL.
    """
    index = search.index()
    if not isinstance(index, SqliteIndex):
        return
    missing, wrong = index.missing(memory_id), index.wrong(memory_id)
    lacks = "missing in the search index: run verify_memories --repair-index"
    if missing:
        raise Contradicted(_name_of(missing), f"is {lacks}")
    if missing == 0:
        raise Contradicted("the conversation", f"its id and labels are {lacks}")
    if wrong is not None:
        was_not_said = (
            "is in the search index, but not in the history: run verify_memories --repair-index"
        )
        raise Contradicted(_name_of(wrong), was_not_said)


def _name_of(place: int) -> str:
    return f"message #{place}" if place >= 0 else f"text {-place} beside history"
