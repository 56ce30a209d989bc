"""What people type into search boxes and addresses."""

from __future__ import annotations

SEARCH_LENGTH = 200


def searchable(text: str) -> str:
    """Return the search text without characters that no stored text has (NUL, lone surrogates),
    cut to 200 characters.
    """
    return text.replace("\0", "").encode(errors="ignore").decode().strip()[:SEARCH_LENGTH]


def whole_number(text: str, digits: int) -> int | None:
    """Return the number that a text is; None if it is anything else, or has more digits."""
    is_number = text.isascii() and text.isdigit() and len(text) <= digits
    return int(text) if is_number else None
