"""Full-text search of conversations.

A search covers the messages of a conversation and its names, which are its id and labels. A search
finds every message, however old, that has all words of the search, in any order. Without an index,
a search reads every text.

A room (plug-in feature) may register an index for a database. For rare words, an index returns all
matches at once. For common words, conversations are tried in the order of the page, until the page
is full. Only the first 100,000 characters of a message are searched (`messages.phrases.SEARCHED`).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from chatmemory import database
from chatmemory.search.conditions import Has
from chatmemory.search.reading import (
    DIGEST_LABEL,
    INDEXED_AT_ONCE,
    TEXTS_BESIDE,
    TextIndex,
    beginning,
    searched_characters,
    searches_messages,
    user_labels,
)

INDEXES: dict[str, type[TextIndex]] = {}  # by Django's names of the kinds of databases


def has(phrase: str, text: str = "text") -> Has:
    """Return the SQL condition for messages with a phrase in their text. Case and accents are
    ignored.
    """
    return index().has(beginning(text), phrase)


def index() -> TextIndex:
    """Return the text index of this library's database."""
    return index_of(database.connection())


def index_of(connection: BaseDatabaseWrapper) -> TextIndex:
    """Return the text index of a database. If no index is registered for this kind of database, the
    result reads every text.
    """
    return INDEXES.get(connection.vendor, TextIndex)(connection)
