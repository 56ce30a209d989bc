"""Text and ids that every database can hold, checked before one is asked."""

from __future__ import annotations

import re

from chatmemory.core.exceptions import MemoryNotFound, UnstorableText
from chatmemory.core.given import string_id

ID_LENGTH = 255
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def check_text(text: str, what: str) -> None:
    """Raise UnstorableText for text that PostgreSQL cannot store."""
    if _UNSTORABLE.search(text):
        raise UnstorableText(f"{what} cannot contain NUL or lone surrogates")


def storable_id(memory_id: object) -> str:
    """Return an id that can be asked for, if only to find nothing.

    Raises InvalidValue for no string, UnstorableText, and MemoryNotFound for one that is too long,
    of which Citus would take the query for an error.
    """
    found = string_id(memory_id)
    if len(found) > ID_LENGTH:
        raise MemoryNotFound(
            f"no conversation has the id {found[:20]!r}… ({len(found):,} characters): "
            f"ids have at most {ID_LENGTH}"
        )
    check_text(found, "a memory id")
    return found
