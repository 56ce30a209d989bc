"""The search index of PostgreSQL: an index of trigrams (three characters in a row), made with the
extension pg_trgm. PostgreSQL uses the index by itself for conditions on texts.

The index has the texts without case, accents, spaces, and separators such as the dash in AB-12. So
each text that the index finds is compared with the searched words. Without the extension, a search
reads all texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Func, Model, Q, QuerySet, TextField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from django.db.models.sql.compiler import SQLCompiler

from chatmemory import database
from chatmemory.messages.phrases import AROUND, Sought, sought_phrase, sought_words
from chatmemory.patterns import declared_pattern
from chatmemory.search.conditions import Compiled, SqlContext, patterns_of, squashed_sql
from chatmemory.search.reading import (
    TextIndex,
    beginning,
    beginning_of,
    searches_messages,
)

_EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
_OF_TEXTS = f"""CREATE INDEX IF NOT EXISTS chatmemory_search_message ON chatmemory_message
    USING gin ({squashed_sql(beginning_of("text"))} gin_trgm_ops) WHERE origin = 'SAID'"""
_OF_NAMES = (
    f"""CREATE INDEX IF NOT EXISTS chatmemory_search_id ON chatmemory_memory
        USING gin ({squashed_sql("id::text")} gin_trgm_ops)""",
    f"""CREATE INDEX IF NOT EXISTS chatmemory_search_labels ON chatmemory_memory
        USING gin ({squashed_sql("labels::text")} gin_trgm_ops)""",
)
_BESIDE = "chatmemory_search_beside"
_OF_TEXTS_BESIDE = f"""CREATE INDEX IF NOT EXISTS {_BESIDE} ON {{table}}
    USING gin ({squashed_sql(beginning_of("text"))} gin_trgm_ops)"""
# ANALYZE would keep whole texts and labels, even after their redaction
_NO_SAMPLES = tuple(
    f"ALTER INDEX IF EXISTS {name} ALTER COLUMN 1 SET STATISTICS 0"
    for name in ("chatmemory_search_message", "chatmemory_search_labels", _BESIDE)
)
_FORMER = ("message_by_phrase", "memory_by_id_part", "memory_by_labels")
_INDEXES = ("chatmemory_search_message", "chatmemory_search_id", "chatmemory_search_labels")
_NUMBER = "SELECT reltuples FROM pg_class WHERE oid = 'chatmemory_message'::regclass"
_NUMBER_BY_CONVERSATION = "SELECT COALESCE(SUM(last_seq), 0) FROM chatmemory_memory"
# REPEATABLE samples the same blocks each time: others would have to be read from the disk. On a
# cluster it would sample the same blocks of each shard, and no block of small ones.
_SAMPLE = f"""SELECT
    COUNT(*) FILTER (WHERE origin = 'SAID' AND {squashed_sql(beginning_of("text"))} LIKE ALL(%s)),
    COUNT(*) FROM chatmemory_message TABLESAMPLE SYSTEM (%s)"""  # noqa: S608
SAMPLED = 1_000  # messages
FAR_MORE = 10
MOST_PARTS = 4  # of a search, with which the index is asked
_ALTERED_BY_JSON = declared_pattern(r'[:"\\\x00-\x1f]')


class _Near(Func):
    """Whether a text without case, accents, spaces and separators is like a pattern. The index
    answers this.
    """

    output_field = BooleanField()

    def __init__(self, text: Combinable, pattern: str = "", **extra: SqlContext) -> None:
        super().__init__(text, **extra)
        self.pattern = pattern

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: SqlContext
    ) -> Compiled:
        text, parameters = compiler.compile(self.source_expressions[0])
        sql = squashed_sql(text)
        return f"({sql} LIKE %s)", [*parameters * sql.count(text), self.pattern]


class PostgresqlIndex(TextIndex):
    """Searches with the index of PostgreSQL, which the database itself keeps up to date."""

    def matching_messages(self, words: str) -> QuerySet[Model]:
        """Return the messages that contain the words. The index finds candidates, whose texts are
        compared with the words.
        """
        return self.read(words).filter(self._near(beginning("text"), sought_words(words)))

    def matching_beside(self, words: str) -> QuerySet[Model]:
        return self.read_beside(words).filter(self._near(beginning("text"), sought_words(words)))

    def _near(self, text: Combinable, sought: Sought) -> Q:
        near = Q()
        for pattern in patterns_of(sought, self.connection, MOST_PARTS):
            near &= Q(_Near(text, pattern))
        return near

    def few(self, words: str, most: int) -> list[str] | None:
        return None if self._is_common(words, most) else super().few(words, most)

    def mentions(self, words: str, memory_ids: Sequence[str], most: int) -> dict[str, list[int]]:
        """Return the numbers of the latest messages that contain the words, by conversation ID: at
        most `most` for each conversation.

        The index is used only for rare words in long conversations. For a frequent word, the index
        would list very many messages.
        """
        reads = self.are_short(memory_ids) or self._is_common(words, most * len(memory_ids))
        return self.latest(
            self.read(words) if reads else self.matching_messages(words), memory_ids, most
        )

    def _is_common(self, words: str, most: int) -> bool:
        """Estimate from a sample whether far more than `most` messages contain the words.

        The number of all messages comes from PostgreSQL, or from the conversations if PostgreSQL
        does not know it: before the first ANALYZE, and on the coordinator of a cluster.
        """
        with self.connection.cursor() as cursor:
            cursor.execute(_NUMBER)
            (number,), sample = cursor.fetchone(), f"{_SAMPLE} REPEATABLE (0)"
            if number <= 0:
                cursor.execute(_NUMBER_BY_CONVERSATION)
                (number,), sample = cursor.fetchone(), _SAMPLE
            number = int(number)
            if number < FAR_MORE * most or not searches_messages(words):
                return False
            patterns = list(patterns_of(sought_words(words), self.connection, MOST_PARTS))
            cursor.execute(sample, [patterns or ["%"], min(100, 100 * SAMPLED / number)])
            found, sampled = cursor.fetchone()
        return bool(found * number > FAR_MORE * most * sampled)

    def named(self, words: str) -> Q:
        """Return the condition for conversations with the words in their ID or labels.

        Labels are stored as JSON, which escapes some characters, such as quotation marks. In
        labels, the index therefore finds candidates by a part of each word: the longest part
        without such a character.
        """
        condition = super().named(words)
        for word in sorted(words.split(), key=len)[-MOST_PARTS:]:
            part = max(_ALTERED_BY_JSON.split(word), key=len).strip(AROUND)
            in_id = self._near(Cast("id", TextField()), sought_phrase(word.strip(AROUND)))
            in_labels = self._near(Cast("labels", TextField()), sought_phrase(part))
            condition &= in_id | in_labels if in_id and in_labels else Q()
        return condition

    def install(self) -> None:
        for former, name in zip(_FORMER, _INDEXES, strict=True):
            self.run(f"ALTER INDEX IF EXISTS {former} RENAME TO {name}")
        self._try(_EXTENSION, _OF_TEXTS, *_OF_NAMES, *_NO_SAMPLES)

    def keep_up(self) -> None:
        if table := self.beside():
            self._try(_EXTENSION, _OF_TEXTS_BESIDE.format(table=table), *_NO_SAMPLES)

    def remove(self) -> None:
        """Remove the index. The extension stays, because other applications may use it."""
        for name in (*_INDEXES, _BESIDE):
            self.run(f"DROP INDEX IF EXISTS {name}")

    def _try(self, *statements: str) -> None:
        """Execute statements. Do nothing if the database user is not allowed to, such as to install
        the extension.
        """
        try:
            with database.atomic(self.connection.alias):
                self.run(*statements)
        except DatabaseError:
            return
