"""Full-text search of conversations.

A search covers the messages and the names of a conversation, which are its id and labels. It finds
every message, however old, that has all its words, in any order. Without an index it reads every
text. A room may register an index for a database: for rare words, it returns all places at once.
For common words, conversations are tried in the order of the page, until it is full. The first
100,000 characters of a message are searched (`messages.phrases.SEARCHED`).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from chatmemory import database
from chatmemory.search.reading import (
    DIGEST_LABEL,
    INDEXED_AT_ONCE,
    TextIndex,
    beginning,
    searched_characters,
    searches_messages,
    user_labels,
)

INDEXES: dict[str, type[TextIndex]] = {}  # by Django's names of the kinds of databases


def has(phrase: str, text: str = "text") -> Any:
    """Return the condition for messages with a phrase in their text, ignoring case and accents."""
    return index().has(beginning(text), phrase)


def index() -> TextIndex:
    """Return the index of this library's database."""
    return index_of(database.connection())


def index_of(connection: BaseDatabaseWrapper) -> TextIndex:
    """Return the text index of a database. The index of a database without an own kind reads every
    text.
    """
    return INDEXES.get(connection.vendor, TextIndex)(connection)
