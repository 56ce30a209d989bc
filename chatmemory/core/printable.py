"""Make any text safe to print, so that an error about a text can always be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with lone surrogates, which cannot be encoded, written as `\\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()
