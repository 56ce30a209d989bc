"""Full-text search of conversations.

Ids and labels, the names of a conversation, are found as what was said in it is. A search finds
every message, however old. Without an index it reads every text. A room may register an index for
a database: where words are in few places, it tells them all at once. Where they are common, the
conversations of a page are tried in its order, until it is full. Of a message, its first 100,000
characters are searched (`messages.phrases.SEARCHED`).
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Combinable

from chatmemory import database
from chatmemory.search.reading import (
    DIGEST_LABEL,
    INDEXED_AT_ONCE,
    TextIndex,
    beginning,
    given_labels,
    searched_characters,
    searches_messages,
)

INDEXES: dict[str, type[TextIndex]] = {}  # by the names that Django has for kinds of databases


def has(words: str, text: str = "text") -> Any:
    """Return the condition for messages with the words in their text, ignoring case."""
    return index().has(beginning(text), words)


def place(words: str) -> Combinable:
    """Return where words are in the text of a message, from 1; 0 if they are not."""
    return index().place(beginning("text"), words)


def index() -> TextIndex:
    """Return the index of our database."""
    return index_of(database.connection())


def index_of(connection: BaseDatabaseWrapper) -> TextIndex:
    """Return the index of a database, or what reads every text."""
    return INDEXES.get(connection.vendor, TextIndex)(connection)
