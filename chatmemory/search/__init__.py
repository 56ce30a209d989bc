"""Full-text search of conversations: of their messages, ids and labels.

A message is found if it has all words of the search, in any order. Only its first 100,000
characters are searched (`messages.phrases.SEARCHED`).

Without an index, every text is read. A room may register an index for a kind of database, such as
SQLite. For rare words, the index returns all matches. For common words, conversations are read in
the sort order of the requested page, until the page is full.
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
    """Return the SQL condition for messages with a phrase. Case and accents do not matter. `text`
    is the name of the field.
    """
    return index().has(beginning(text), phrase)


def index() -> TextIndex:
    """Return the text index of this library's database."""
    return index_of(database.connection())


def index_of(connection: BaseDatabaseWrapper) -> TextIndex:
    """Return the text index of a database. If no index is registered for the kind of database
    (`connection.vendor`), the result reads every text.
    """
    return INDEXES.get(connection.vendor, TextIndex)(connection)
