"""Searches texts for terms. A text is read once for any number of terms.

A term is found only as a whole: `A-118` is not found in `A-1182`. For a path or a URL, the
identifying part is enough: `src/app/main.py` is found in a text with `main.py`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from chatmemory.patterns import declared_pattern
from chatmemory.recall.facts import PUNCTUATION, has_digit, runs_in

_SHORTEST_END = 6
_IS_RUN = declared_pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._@/+\-]*[A-Za-z0-9])?")
_POINT_OR_DIGIT = declared_pattern(r"[.\d]")
_ID = declared_pattern(r"\A(?:[0-9]{3,}|(?=[a-f\-]*[0-9])[0-9a-f\-]{7,})")


class Terms:
    """Terms that are searched for in texts."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._by_part: defaultdict[str, list[str]] = defaultdict(list)
        for term in terms:
            self._by_part[identifying_part(term)].append(term)
        in_runs = [part for part in self._by_part if _IS_RUN.fullmatch(part)]
        self._only_telling = all(map(has_digit, in_runs))
        self._sizes = sorted({part.count("/") for part in in_runs})
        others = self._by_part.keys() - set(in_runs)
        self._others = [(part, _alone(part)) for part in sorted(others)]

    def found_in(self, text: str) -> set[str]:
        """Return the terms that a text contains. The identifying part of a term, such as the id in
        a URL, is enough.
        """
        runs = runs_in(text, self._only_telling)
        parts = runs & self._by_part.keys()
        parts |= {part for run in runs if "/" in run for part in self._parts(run)}
        parts |= {part for part, alone in self._others if part in text and alone.search(text)}
        return {term for part in parts for term in self._by_part[part]}

    def _parts(self, run: str) -> Iterator[str]:
        """Yield the parts of a path or URL that could be terms themselves."""
        segments = run.split("/")
        for size in self._sizes:
            for first in range(len(segments) - size):
                part = "/".join(segments[first : first + size + 1]).strip(PUNCTUATION)
                if part in self._by_part:
                    yield part


def _alone(part: str) -> re.Pattern[str]:
    return declared_pattern(rf"(?<![^\W_]){re.escape(part)}(?![^\W_])", family="a term")


def is_found(term: str, texts: Iterable[str]) -> bool:
    """Return whether one of the texts contains a term. The identifying part of the term, such as
    the id in a URL, is enough.
    """
    terms = Terms([term])
    return any(map(terms.found_in, texts))


def identifying_part(term: str) -> str:
    """Return the part of a term that is enough to find the term in a text.

    - For a URL or path with a number or id near its end, this number or id: `123` in
      `comments/123/replies`.
    - For any other URL or path, its shortest end of at least six characters: `main.py` in
      `src/app/main.py`. An end without a slash must have a dot or a digit.
    - For any other term, or if no end fits, the whole term.
    """
    for segment in reversed(term.split("/")[1:]):
        if _ID.fullmatch(segment):
            return segment
        if not segment.isalpha():
            break
    return _end(term).strip(PUNCTUATION) or term


def _end(term: str) -> str:
    at = len(term)
    while (at := term.rfind("/", 0, at)) >= 0:
        end = term[at + 1 :]
        if len(end) >= _SHORTEST_END and ("/" in end or _POINT_OR_DIGIT.search(end)):
            return end
    return term
