"""Full-text search of conversations, with an index of each database.

SQLite has a contentless FTS5 index of trigrams, which triggers keep up to date. It uses row ids of
a table of its own, because VACUUM may change those of the message table. PostgreSQL has a pg_trgm
index, which `icontains` uses by itself; without the extension, a search reads every text.
"""

from __future__ import annotations

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import RawSQL

TRIGRAM = 3
MENTIONS_MAX = 10_000

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
    """Return the condition for conversations with a message that contains the words.

    Case is ignored. SQLite uses only the latest 10,000 messages that contain the words. One or two
    ASCII characters match no message, because nearly every text contains them.
    """
    if len(words) < TRIGRAM and words.isascii():
        return Q(id__in=())
    if connection.vendor == "sqlite" and len(words) >= TRIGRAM:
        quoted = '"' + words.replace('"', '""') + '"'
        return Q(id__in=RawSQL(_SQLITE_MENTIONS, [quoted, MENTIONS_MAX]))  # noqa: S611
    messages = apps.get_model("chatmemory", "Message")._default_manager
    found = messages.filter(origin="SAID", text__icontains=words)
    return Q(id__in=found.values("memory_id"))


def install(connection: BaseDatabaseWrapper) -> None:
    """Create the index if it does not exist, and fill it."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_TABLES, *_SQLITE_FILL)
        install_triggers(connection)
    elif connection.vendor == "postgresql":
        try:
            with transaction.atomic(using=connection.alias):
                _run(connection, "CREATE EXTENSION IF NOT EXISTS pg_trgm", _POSTGRESQL_INDEX)
        except DatabaseError:
            return


def install_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers again, because a migration that rebuilds the message table drops them."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_TRIGGERS)


def rebuild(connection: BaseDatabaseWrapper) -> None:
    """Fill SQLite's index again, so that it contains no erased text."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_FILL)


def remove(connection: BaseDatabaseWrapper) -> None:
    """Undo `install`. The PostgreSQL extension stays, because others may use it."""
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
