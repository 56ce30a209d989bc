"""Words about hostile text must not fail where the text itself would."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with lone surrogates, which no encoding has, spelled out as `\\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()
