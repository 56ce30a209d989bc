"""Full-text search of conversations, with an index of each database.

Ids and labels, the names of a conversation, are found as what was said in it is. A search finds
every message, however old. Where words are in few places, the index tells them all at once. Where
they are common, the conversations of a page are tried in its order, until it is full. Of a message,
its first 100,000 characters are searched (`core.phrases.SEARCHED`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.expressions import Combinable

from chatmemory import database
from chatmemory.search.postgresql import PostgresqlIndex
from chatmemory.search.reading import (
    DIGEST_LABEL,
    TextIndex,
    beginning,
    given_labels,
    searched_characters,
    searches_messages,
)
from chatmemory.search.sqlite import SqliteIndex

__all__ = [
    "DIGEST_LABEL",
    "FEW",
    "condition",
    "few",
    "given_labels",
    "has",
    "index_of",
    "mentions",
    "place",
    "scan_filter",
    "scan_is_exact",
    "searched_characters",
    "searches_messages",
]

FEW = 2_000  # places


def condition(words: str) -> Q:
    """Return the condition for conversations that have the words in their names or messages.

    Case is ignored. The database looks at all places that have the words.
    """
    return index_of(database.connection()).condition(words)


def few(words: str) -> list[str] | None:
    """Return the ids of the conversations that have the words, or None if too many places do."""
    return index_of(database.connection()).few(words, FEW)


def scan_is_exact(words: str) -> bool:
    """Return whether `scan_filter` selects exactly what `condition` does."""
    return index_of(database.connection()).scan_is_exact(words)


def scan_filter(words: str) -> Q:
    """Return the condition that reads the names and messages of a conversation.

    It is the quicker one for a few conversations if the words are common.
    """
    return index_of(database.connection()).scan_filter(words)


def mentions(words: str, memory_ids: Sequence[str], most: int) -> dict[str, list[int]]:
    """Return the seqs of up to `most` of the latest messages that have the words.

    Only conversations with such messages are in the result.
    """
    if not searches_messages(words):
        return {}
    return index_of(database.connection()).mentions(words, memory_ids, most)


def has(words: str, text: str = "text") -> Any:
    """Return the condition for messages with the words in their text, ignoring case."""
    return index_of(database.connection()).has(beginning(text), words)


def place(words: str) -> Combinable:
    """Return where words are in the text of a message, from 1; 0 if they are not."""
    return index_of(database.connection()).place(beginning("text"), words)


def index_of(connection: BaseDatabaseWrapper) -> TextIndex:
    """Return the index of a database. One without an index reads every text."""
    kinds = {"sqlite": SqliteIndex, "postgresql": PostgresqlIndex}
    return kinds.get(connection.vendor, TextIndex)(connection)
