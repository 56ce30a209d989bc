"""Finding conversations by what was said in them, at any size.

SQLite: a contentless FTS5 index of trigrams, kept by triggers, over row ids of its own (those of
the message table may change in a VACUUM). PostgreSQL: a pg_trgm index, which `icontains` uses by
itself; where the extension cannot be had, search reads every text.
"""

from __future__ import annotations

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import RawSQL

TRIGRAM = 3
MENTIONS_MOST = 10_000

_SQLITE_TABLES = (
    """CREATE TABLE IF NOT EXISTS chatmemory_searchable (
        id INTEGER PRIMARY KEY, memory_id varchar(255) NOT NULL, seq bigint NOT NULL,
        UNIQUE (memory_id, seq))""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS chatmemory_search
        USING fts5(text, content='', tokenize='trigram')""",
)
_INDEX_NEW = """
    INSERT INTO chatmemory_searchable (memory_id, seq) VALUES (new.memory_id, new.seq);
    INSERT INTO chatmemory_search (rowid, text) VALUES (last_insert_rowid(), new.text);"""
_FORGET_OLD = """
    INSERT INTO chatmemory_search (chatmemory_search, rowid, text)
        SELECT 'delete', id, old.text FROM chatmemory_searchable
        WHERE memory_id = old.memory_id AND seq = old.seq;
    DELETE FROM chatmemory_searchable WHERE memory_id = old.memory_id AND seq = old.seq;"""
_SQLITE_TRIGGERS = (
    f"""CREATE TRIGGER IF NOT EXISTS chatmemory_search_said AFTER INSERT ON chatmemory_message
        WHEN new.origin = 'SAID' BEGIN {_INDEX_NEW} END""",
    f"""CREATE TRIGGER IF NOT EXISTS chatmemory_search_gone AFTER DELETE ON chatmemory_message
        WHEN old.origin = 'SAID' BEGIN {_FORGET_OLD} END""",
    f"""CREATE TRIGGER IF NOT EXISTS chatmemory_search_other
        AFTER UPDATE OF text ON chatmemory_message
        WHEN old.origin = 'SAID' BEGIN {_FORGET_OLD} {_INDEX_NEW} END""",
)
_SQLITE_FILL = (
    "INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')",
    "DELETE FROM chatmemory_searchable",
    """INSERT INTO chatmemory_searchable (memory_id, seq)
        SELECT memory_id, seq FROM chatmemory_message WHERE origin = 'SAID'""",
    """INSERT INTO chatmemory_search (rowid, text)
        SELECT s.id, m.text FROM chatmemory_searchable s
        JOIN chatmemory_message m ON m.memory_id = s.memory_id AND m.seq = s.seq""",
)
_SQLITE_MENTIONS = """SELECT memory_id FROM chatmemory_searchable WHERE id IN (
    SELECT rowid FROM chatmemory_search WHERE chatmemory_search MATCH %s
    ORDER BY rowid DESC LIMIT %s)"""
_POSTGRESQL_INDEX = """CREATE INDEX IF NOT EXISTS message_by_text ON chatmemory_message
    USING gin (UPPER(text) gin_trgm_ops) WHERE origin = 'SAID'"""


def saying(words: str) -> Q:
    """Conversations in which someone said the words, letter case aside.

    SQLite looks at the latest 10,000 messages that hold them. Fewer than three letters of the
    Latin alphabet are looked for in ids only: they are in nearly every text.
    """
    if len(words) < TRIGRAM and words.isascii():
        return Q(id__in=())
    if connection.vendor == "sqlite" and len(words) >= TRIGRAM:
        quoted = '"' + words.replace('"', '""') + '"'
        return Q(id__in=RawSQL(_SQLITE_MENTIONS, [quoted, MENTIONS_MOST]))  # noqa: S611
    messages = apps.get_model("chatmemory", "Message")._default_manager
    said = messages.filter(origin="SAID", text__icontains=words)
    return Q(id__in=said.values("memory_id"))


def install(connection: BaseDatabaseWrapper) -> None:
    """Make the index and fill it; does nothing to one that is there."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_TABLES, *_SQLITE_FILL)
        keep(connection)
    elif connection.vendor == "postgresql":
        try:
            with transaction.atomic(using=connection.alias):
                _run(connection, "CREATE EXTENSION IF NOT EXISTS pg_trgm", _POSTGRESQL_INDEX)
        except DatabaseError:
            return


def keep(connection: BaseDatabaseWrapper) -> None:
    """Put the triggers in place: a migration that rebuilds the message table loses them."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_TRIGGERS)


def rebuild(connection: BaseDatabaseWrapper) -> None:
    """Write SQLite's index anew, so that nothing is left in it of what was erased."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_FILL)


def remove(connection: BaseDatabaseWrapper) -> None:
    """Undo `install`; the PostgreSQL extension stays, since others may use it."""
    if connection.vendor == "sqlite":
        names = ("said", "gone", "other")
        _run(connection, *(f"DROP TRIGGER IF EXISTS chatmemory_search_{name}" for name in names))
        _run(connection, "DROP TABLE chatmemory_search", "DROP TABLE chatmemory_searchable")
    elif connection.vendor == "postgresql":
        _run(connection, "DROP INDEX IF EXISTS message_by_text")


def _run(connection: BaseDatabaseWrapper, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
