"""Which terms texts hold: a text is read once, however many terms are looked for.

A text holds a term if it has the characters of the term anywhere, or of a path what follows one of
its slashes. That must be six characters or more, and a bare name of a file must have a dot or a
digit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_SHORTEST_END = 6
# So few strings are found faster one after the other, as Python's `in` is quick.
_FEW = 50
# A run of the characters of facts that is no word of letters alone. Possessive, and tried only
# where a run begins, so that a long text costs no more than its length.
_RUN = re.compile(r"(?<![A-Za-z0-9._@/+\-])[A-Za-z]*+[0-9._@/+\-][A-Za-z0-9._@/+\-]*+", re.ASCII)


class Terms:
    """Terms that are looked for in texts: of a path also what follows a slash, if `by_ends`."""

    def __init__(self, terms: Iterable[str], *, by_ends: bool = True) -> None:
        self._by_end: defaultdict[str, list[str]] = defaultdict(list)
        for term in terms:
            self._by_end[shortest_end(term) if by_ends else term].append(term)
        # A string of length 4 to 7 is looked up by its first 4 characters, one of 8 to 15 by its
        # first 8, and so on: by prefix, the lengths that strings with it have. So each place of a
        # text costs a few look-ups, also where all terms begin alike.
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)
        for end in self._by_end:
            self._lengths[end[: 1 << (len(end).bit_length() - 1)]].add(len(end))
        self._sizes = sorted({len(prefix) for prefix in self._lengths})
        self._are_in_runs = all(map(_RUN.fullmatch, self._by_end))

    def held_by(self, text: str) -> set[str]:
        """Return the terms that a text holds."""
        ends = self._few(text) if len(self._by_end) <= _FEW else self._many(text)
        return {term for end in ends for term in self._by_end[end]}

    def _few(self, text: str) -> Iterable[str]:
        return [end for end in self._by_end if end in text]

    def _many(self, text: str) -> set[str]:
        found: set[str] = set()
        for part in set(_RUN.findall(text)) if self._are_in_runs else (text,):
            for size in self._sizes:
                for at in range(len(part) - size + 1):
                    for length in self._lengths.get(part[at : at + size], ()):
                        if (end := part[at : at + length]) in self._by_end:
                            found.add(end)
        return found


def is_held(term: str, texts: Iterable[str]) -> bool:
    """Return whether one of some texts holds a term."""
    end = shortest_end(term)
    return any(end in text for text in texts)


def shortest_end(term: str) -> str:
    """Return the shortest part of a term by which a text holds it: what follows a slash of a path,
    or the whole term. Longer ends have it in them.
    """
    at = len(term)
    while (at := term.rfind("/", 0, at)) >= 0:
        end = term[at + 1 :]
        if len(end) >= _SHORTEST_END and ("/" in end or re.search(r"[.\d]", end)):
            return end
    return term
