"""Full-text search of conversations, with an index of each database.

SQLite has a contentless FTS5 index of trigrams, which triggers keep up to date. It uses row ids of
a table of its own, because VACUUM may change those of the message table. PostgreSQL has a pg_trgm
index, which `icontains` uses by itself; without the extension, a search reads every text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, QuerySet, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left, RowNumber

from chatmemory import database

TRIGRAM = 3
MENTIONS_MAX = 10_000

_INDEX = "chatmemory_searchable"
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
# CROSS JOIN keeps the order of the tables: the index of words finds few rows, the other all.
_SQLITE_MENTIONS_BENEATH = """SELECT memory_id FROM chatmemory_searchable WHERE id IN (
    SELECT said.id FROM chatmemory_search CROSS JOIN chatmemory_searchable said
    ON said.id = chatmemory_search.rowid
    WHERE chatmemory_search MATCH %s AND substr(said.memory_id, 1, %s) = %s
    ORDER BY chatmemory_search.rowid DESC LIMIT %s)"""
_SQLITE_MENTIONS_IN = """WITH latest (id) AS (
    SELECT rowid FROM chatmemory_search WHERE chatmemory_search MATCH %s
    ORDER BY rowid DESC LIMIT %s)
    SELECT memory_id, seq, (SELECT COUNT(*) FROM latest) FROM chatmemory_searchable
    WHERE id IN (SELECT id FROM latest) AND memory_id IN (SELECT value FROM json_each(%s))
    ORDER BY memory_id, seq DESC"""
_POSTGRESQL_INDEX = """CREATE INDEX IF NOT EXISTS message_by_text ON chatmemory_message
    USING gin (UPPER(text) gin_trgm_ops) WHERE origin = 'SAID'"""


@dataclass(frozen=True)
class Mentions:
    """The seqs of the latest messages that contain the searched words, per conversation.

    `is_complete` is False if older messages may contain them, too.
    """

    seqs: dict[str, list[int]]
    is_complete: bool


def searches_messages(words: str) -> bool:
    """Return whether words are searched for in messages.

    One or two ASCII characters are not, because nearly every text contains them.
    """
    return len(words) >= TRIGRAM or not words.isascii()


def saying(words: str, prefix: str = "") -> Q:
    """Return the condition for conversations with a message that contains the words, and with an id
    that begins with the prefix.

    Case is ignored in the words. SQLite uses only the latest 10,000 messages that contain the
    words, of conversations with this prefix. No message matches words that are not searched for in
    messages.
    """
    if not searches_messages(words):
        return Q(id__in=())
    if not _is_indexed(words):
        return Q(id__in=_said(words, prefix).values("memory_id"))
    if not prefix:
        return Q(id__in=RawSQL(_SQLITE_MENTIONS, [_quoted(words), MENTIONS_MAX]))  # noqa: S611
    beneath = [_quoted(words), len(prefix), prefix, MENTIONS_MAX]
    return Q(id__in=RawSQL(_SQLITE_MENTIONS_BENEATH, beneath))  # noqa: S611


def mentions(words: str, memory_ids: Sequence[str], most: int) -> Mentions:
    """Return up to `most` of the latest messages of each conversation that contain the words.

    The messages are those that `saying` uses.
    """
    seqs: dict[str, list[int]] = defaultdict(list)
    if not searches_messages(words):
        return Mentions(seqs, is_complete=True)
    used = 0
    if _is_indexed(words):
        with database.connection().cursor() as cursor:
            asked = json.dumps(list(memory_ids))
            cursor.execute(_SQLITE_MENTIONS_IN, (_quoted(words), MENTIONS_MAX, asked))
            for memory_id, seq, used in cursor:  # noqa: B007
                if len(seqs[memory_id]) < most:
                    seqs[memory_id].append(seq)
    else:
        place = Window(RowNumber(), partition_by=F("memory_id"), order_by=F("seq").desc())
        found = _said(words).filter(memory_id__in=memory_ids).annotate(place=place)
        rows = found.filter(place__lte=most).order_by("memory_id", "-seq")
        for memory_id, seq in rows.values_list("memory_id", "seq"):
            seqs[memory_id].append(seq)
    return Mentions(seqs, is_complete=used < MENTIONS_MAX)


def _is_indexed(words: str) -> bool:
    """Return whether SQLite's index finds the words: it has no words shorter than a trigram."""
    return database.connection().vendor == "sqlite" and len(words) >= TRIGRAM


def _quoted(words: str) -> str:
    return '"' + words.replace('"', '""') + '"'


def _said(words: str, prefix: str = "") -> QuerySet[Any]:
    messages = apps.get_model("chatmemory", "Message")._default_manager
    said = messages.filter(origin="SAID", text__icontains=words)
    if not prefix:
        return said
    return said.alias(beginning=Left("memory_id", len(prefix))).filter(beginning=prefix)


def install(connection: BaseDatabaseWrapper) -> None:
    """Create the index if it does not exist, and fill it."""
    if connection.vendor == "sqlite":
        _run(connection, *_SQLITE_TABLES, *_SQLITE_FILL)
        install_triggers(connection)
    elif connection.vendor == "postgresql":
        try:
            with database.atomic(connection.alias):
                _run(connection, "CREATE EXTENSION IF NOT EXISTS pg_trgm", _POSTGRESQL_INDEX)
        except DatabaseError:
            return


def install_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers again, because a migration that rebuilds the message table drops them.

    A database that was migrated back to before the index has none.
    """
    if connection.vendor == "sqlite" and _INDEX in connection.introspection.table_names():
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
