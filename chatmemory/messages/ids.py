"""The ids of conversations: which ids a database can store, and how they are written in URLs."""

from __future__ import annotations

from urllib.parse import quote, unquote

from chatmemory.exceptions import InvalidValue, MemoryNotFound, UnstorableText
from chatmemory.messages.field_checks import brief
from chatmemory.patterns import declared_pattern

ID_LENGTH = 255
_UNSTORABLE = declared_pattern("[\x00\ud800-\udfff]")


def string_id(memory_id: object, limit_name: str = "") -> str:
    """Return `memory_id` if it is a string. Raises InvalidValue for any other value, because a
    database would take 42 and "42" for one conversation.

    An integer may be a limit that was meant for the argument named `limit_name`, such as
    `max_messages`. The error then suggests this argument, such as `max_messages=20`.
    """
    if memory_id is None:
        raise InvalidValue("id cannot be null")
    if not isinstance(memory_id, str):
        shown = brief(memory_id)
        meant = f", or {limit_name}={shown}" if limit_name and isinstance(memory_id, int) else ""
        raise InvalidValue(f"a memory id must be a string, not {shown}: use str(…){meant}")
    return memory_id


def check_text(text: str, what: str) -> None:
    """Raise UnstorableText for text that PostgreSQL cannot store. `what` names the text in the
    error.
    """
    if _UNSTORABLE.search(text):
        raise UnstorableText(f"{what} cannot contain NUL or lone surrogates")


def storable_id(memory_id: object) -> str:
    """Return `memory_id` if it can be used in a query. The conversation need not exist.

    Raises InvalidValue for a value that is not a string. Raises UnstorableText for text that
    PostgreSQL cannot store, and MemoryNotFound for an id of more than 255 characters.
    """
    found = string_id(memory_id)
    if len(found) > ID_LENGTH:
        raise MemoryNotFound(
            f"no conversation has the id {found[:20]!r}… ({len(found):,} characters): "
            f"ids have at most {ID_LENGTH}"
        )
    check_text(found, "a memory id")
    return found


def address(memory_id: str) -> str:
    """Return an id as a segment of a URL path: `acme/7` becomes `acme~2F7`.

    A-Z a-z 0-9 - _ are written as they are, and so is a dot unless the id is "." or "..". Every
    other byte of the UTF-8 form becomes ~XX.
    """
    if memory_id in (".", ".."):
        return memory_id.replace(".", "~2E")
    return quote(memory_id, safe="").replace("~", "%7E").replace("%", "~")


def memory_id_at(segment: str) -> str:
    """Return the id that a segment of a URL path stands for: `acme~2F7` becomes `acme/7`. This is
    the inverse of `address`.

    Raises ValueError for a segment that `address` does not write, such as `a~41` for the id `aA`.
    But hexadecimal digits in lower case, such as `acme~2f7`, are accepted.
    """
    memory_id = unquote(segment.replace("~", "%"), errors="strict")
    if "\0" in memory_id:
        raise ValueError("a memory id cannot contain NUL")
    if address(memory_id).upper() != segment.upper():  # hexadecimal digits may be in lower case
        raise ValueError(
            f"{segment!r} is not a valid memory ID in a URL: write each byte except "
            "A-Z a-z 0-9 - _ . as ~ and two hexadecimal digits, such as ~2F"
        )
    return memory_id
