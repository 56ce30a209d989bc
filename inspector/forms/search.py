"""The search boxes of the overview and of a conversation."""

from __future__ import annotations

SEARCH_LENGTH = 200


def searchable(text: str) -> str:
    """Return the search text without characters that no stored text has (NUL, lone surrogates),
    cut to 200 characters.
    """
    return text.replace("\0", "").encode(errors="ignore").decode().strip()[:SEARCH_LENGTH]
