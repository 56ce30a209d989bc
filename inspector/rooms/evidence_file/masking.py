"""The mask of an evidence file: the same term becomes the same mark everywhere.

The file contains a masked term in no form: it is replaced in each text, in upper and lower case,
and with the escapes of JSON and addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chatmemory.patterns import declared_pattern

WORDS_MAX, WORD_LENGTH = 50, 200

# Secrets with a recognizable form, unlike names of people. If two match at one place, the first
# wins.
KINDS: Mapping[str, str] = {
    "mail": r"(?<![\w.+%-])[\w.+%-]++@[\w-]++(?:\.[\w-]++)+",
    "address of a site": r"https?://[^\s\"'<>\\]+",
    "card": r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])",
    "phone": r"(?<![\w+])\+\d(?:[ ()./-]{0,2}\d){6,14}(?!\w)",
    "number": r"(?<![\w.,-])\d{4,}(?![\w-])",
    "id": r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?!\w)",
}
WORD = "word"
_BETWEEN, _NO_DIGIT = declared_pattern(r"[ ()./-]"), declared_pattern(r"\D")


@dataclass(frozen=True)
class Choice:
    """A choice of masked parts: kinds of terms, words, roles, and single messages."""

    kinds: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    seqs: frozenset[int] = frozenset()


class Masker:
    """Replaces terms, and counts them by their kind."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._marks: dict[str, str] = {}
        self.found: dict[str, int] = {}
        self._spellings = {
            spelling.lower(): word
            for word in filter(None, choice.words)
            for spelling in _spellings(word)
        }
        self._words = self._pattern(())
        self._terms = self._pattern(KINDS)
        self._but_cards = self._pattern([kind for kind in KINDS if kind != "card"])

    def _pattern(self, kinds: Iterable[str]) -> re.Pattern[str] | None:
        """Return the pattern of words and of terms of the chosen kinds; None if nothing is masked.

        It finds all terms in one pass, so that marks themselves are not searched.
        """
        chosen = [
            f"(?P<k{n}>{form})"
            for n, (kind, form) in enumerate(KINDS.items())
            if kind in kinds and kind in self._choice.kinds
        ]
        longest_first = sorted(map(re.escape, self._spellings), key=len, reverse=True)
        if longest_first:
            chosen.append(f"(?i:{'|'.join(longest_first)})")
        return declared_pattern("|".join(chosen), family="terms to mask") if chosen else None

    def is_whole(self, seq: int, role: str) -> bool:
        """Return whether the whole text of a message is left out."""
        return seq in self._choice.seqs or role in self._choice.roles

    def without_words(self, text: str) -> str:
        """Return a text of the site, such as a policy, with marks in place of masked words."""
        return self._masked(self._words, text)

    def text(self, text: str) -> str:
        """Return a text with marks in place of masked terms and words."""
        return self._masked(self._terms, text)

    def data(self, value: Any) -> Any:
        """Return a JSON value with each of its texts masked."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(each) for each in value]
        if isinstance(value, dict):
            return {name: self.data(each) for name, each in value.items()}
        return value

    def _masked(self, pattern: re.Pattern[str] | None, text: str) -> str:
        return pattern.sub(self._replaced, text) if pattern else text

    def _replaced(self, match: re.Match[str]) -> str:
        term, kind = match[0], self._kind(match.lastgroup)
        if kind == "card" and not _has_check_digit(term):
            return self._masked(self._but_cards, term)
        if kind == WORD:
            term = self._spellings.get(term.lower(), term)
        return self._mark(kind, term)

    def _kind(self, group: str | None) -> str:
        """Return the kind of term that a group of the pattern matched; words have no group."""
        return WORD if group is None else list(KINDS)[int(group[1:])]

    def _mark(self, kind: str, term: str) -> str:
        key = _BETWEEN.sub("", term).lower() if kind in ("card", "phone") else term.lower()
        if key not in self._marks:
            self._marks[key] = f"[redacted {kind} #A{len(self._marks) + 1}]"
            self.found[kind] = self.found.get(kind, 0) + 1
        return self._marks[key]


def _spellings(word: str) -> Iterable[str]:
    """Yield the spellings of a word in texts, JSON and addresses."""
    return {
        word,
        json.dumps(word)[1:-1],
        json.dumps(word, ensure_ascii=False)[1:-1],
        json.dumps(word)[1:-1].replace("/", "\\/"),
        quote(word),
        quote(word, safe=""),
        quote(word).replace("%20", "+"),
    }


def _has_check_digit(number: str) -> bool:
    """Return whether digits can be the number of a payment card, by the Luhn algorithm."""
    digits = [int(each) for each in _NO_DIGIT.sub("", number)]
    doubled = [
        n if place % 2 == 0 else sum(divmod(2 * n, 10)) for place, n in enumerate(digits[::-1])
    ]
    return sum(doubled) % 10 == 0
