"""The tables of SQLite's index, which triggers keep up to date.

A contentless FTS5 table knows which messages have a trigram, but not where. Its row ids are those
of a table of its own, because VACUUM may change those of other tables. The names of a conversation,
its id and its labels, are there as message 0. FTS5 has to be told the words of a deleted row, so
the triggers make them from the old values.

FTS5 writes to its tables at the end of each statement of a trigger, which takes five times as long
for many messages as one statement for all. So a transaction that adds several pauses the trigger,
by a row that no other transaction sees, and puts them into the index itself (`ledger.indexing`).
"""
# ruff: noqa: S608 - all parts of the statements are constants of this file

from __future__ import annotations

from chatmemory.search.reading import DIGEST_LABEL, beginning_of

# Characters. Without repetition they take less than half a second, in which nobody else writes.
INDEXED_AT_ONCE = 500_000


def names_of(row: str) -> str:
    """Return the SQL of the names of a conversation's row: its id, and its labels in lines."""
    return f"""{row}.id || char(10) || coalesce((SELECT group_concat(key || ':' || value, char(10))
        FROM json_each({row}.labels) WHERE key <> '{DIGEST_LABEL}'), '')"""


def _put(memory_id: str, seq: str, text: str) -> str:
    return f"""
    INSERT INTO chatmemory_searchable (memory_id, seq) VALUES ({memory_id}, {seq});
    INSERT INTO chatmemory_search (rowid, text) VALUES (last_insert_rowid(), {text});"""


def _take(memory_id: str, seq: str, text: str) -> str:
    return f"""
    INSERT INTO chatmemory_search (chatmemory_search, rowid, text)
        SELECT 'delete', id, {text} FROM chatmemory_searchable
        WHERE memory_id = {memory_id} AND seq = {seq};
    DELETE FROM chatmemory_searchable WHERE memory_id = {memory_id} AND seq = {seq};"""


_PUT_MESSAGE = _put("new.memory_id", "new.seq", beginning_of("new.text"))
_TAKE_MESSAGE = _take("old.memory_id", "old.seq", beginning_of("old.text"))
_PUT_NAMES = _put("new.id", "0", names_of("new"))
_TAKE_NAMES = _take("old.id", "0", names_of("old"))

TABLES = (
    """CREATE TABLE IF NOT EXISTS chatmemory_searchable (
        id INTEGER PRIMARY KEY, memory_id varchar(255) NOT NULL, seq bigint NOT NULL,
        UNIQUE (memory_id, seq))""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS chatmemory_search
        USING fts5(text, content='', tokenize='trigram', detail=none)""",
    "CREATE TABLE IF NOT EXISTS chatmemory_index_pause (id INTEGER PRIMARY KEY)",
)
TRIGGERS = {
    "said": f"""AFTER INSERT ON chatmemory_message
        WHEN new.origin = 'SAID' AND NOT EXISTS (SELECT 1 FROM chatmemory_index_pause)
        BEGIN {_PUT_MESSAGE} END""",
    "gone": f"""AFTER DELETE ON chatmemory_message
        WHEN old.origin = 'SAID' BEGIN {_TAKE_MESSAGE} END""",
    "other": f"""AFTER UPDATE OF text ON chatmemory_message
        WHEN old.origin = 'SAID' BEGIN {_TAKE_MESSAGE} {_PUT_MESSAGE} END""",
    "named": f"AFTER INSERT ON chatmemory_memory BEGIN {_PUT_NAMES} END",
    "nameless": f"AFTER DELETE ON chatmemory_memory BEGIN {_TAKE_NAMES} END",
    "renamed": f"""AFTER UPDATE OF labels ON chatmemory_memory
        WHEN new.labels IS NOT old.labels BEGIN {_TAKE_NAMES} {_PUT_NAMES} END""",
}
EMPTY = (
    "INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')",
    "DELETE FROM chatmemory_searchable",
)
FILL = (
    """INSERT INTO chatmemory_searchable (memory_id, seq)
        SELECT memory_id, seq FROM chatmemory_message WHERE origin = 'SAID'""",
    f"""INSERT INTO chatmemory_search (rowid, text)
        SELECT s.id, {beginning_of("m.text")} FROM chatmemory_searchable s
        JOIN chatmemory_message m ON m.memory_id = s.memory_id AND m.seq = s.seq""",
)
FILL_NAMES = (
    """INSERT OR IGNORE INTO chatmemory_searchable (memory_id, seq)
        SELECT id, 0 FROM chatmemory_memory""",
    f"""INSERT INTO chatmemory_search (rowid, text) SELECT s.id, {names_of("m")}
        FROM chatmemory_memory m JOIN chatmemory_searchable s ON s.memory_id = m.id AND s.seq = 0
        WHERE NOT EXISTS (SELECT 1 FROM chatmemory_search_docsize d WHERE d.id = s.id)""",
)
