"""Text and ids that every database can hold, checked before one is asked."""

from __future__ import annotations

import re

from chatmemory.core.exceptions import UnstorableText
from chatmemory.core.ids import string_id

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def check_text(text: str, what: str) -> None:
    """Raise UnstorableText for text that PostgreSQL cannot store."""
    if _UNSTORABLE.search(text):
        raise UnstorableText(f"{what} cannot contain NUL or lone surrogates")


def storable_id(memory_id: object) -> str:
    """Return an id that can be asked for, if only to find nothing.

    Raises InvalidValue for no string, UnstorableText.
    """
    found = string_id(memory_id)
    check_text(found, "a memory id")
    return found
