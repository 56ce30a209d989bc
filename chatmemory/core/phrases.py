"""Whether a text has a phrase, and where, ignoring case as a search does.

Of a long text only the beginning is searched, here and by databases.
"""

from __future__ import annotations

from itertools import accumulate

SEARCHED = 100_000  # characters of a text


def folded(text: str) -> str:
    """Return a text without the difference of cases. It can be longer: "İ" becomes two letters."""
    return text.lower().replace("ς", "σ")


def has_phrase(text: str, phrase: str) -> bool:
    return folded(phrase) in folded(text[:SEARCHED])


def place_of(text: str, phrase: str) -> slice | None:
    """Return the first place of a phrase in a text, or None."""
    text = text[:SEARCHED]
    whole, sought = folded(text), folded(phrase)
    start = whole.find(sought)
    if start < 0:
        return None
    if len(whole) == len(text):
        return slice(start, start + len(sought))
    ends = list(accumulate(len(folded(character)) for character in text))
    first = next(n for n, end in enumerate(ends) if end > start)
    last = next(n for n, end in enumerate(ends) if end >= start + len(sought))
    return slice(first, last + 1)
