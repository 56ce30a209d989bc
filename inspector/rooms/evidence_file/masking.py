"""What is left out of an evidence file: the same term becomes the same mark everywhere.

A masked term is in the file in no form: it is replaced in each text of it, whatever its case, also
where JSON or an address has written it with escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

WORDS_MAX, WORD_LENGTH = 50, 200

# What is found by its form. Names of people cannot be.
KINDS: Mapping[str, re.Pattern[str]] = {
    "mail": re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+"),
    "card": re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])"),
    "phone": re.compile(r"(?<![\w+])\+\d(?:[ ()./-]{0,2}\d){6,14}(?!\w)"),
    "address of a site": re.compile(r"https?://[^\s\"'<>\\]+"),
    "id": re.compile(
        r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*(?!\w)"
    ),
}


@dataclass(frozen=True)
class Choice:
    """What is to be masked: terms of these kinds, words, whole roles, and single messages."""

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
        spellings = {
            spelling.lower(): word
            for word in filter(None, choice.words)
            for spelling in _spellings(word)
        }
        self._spellings = spellings
        longest_first = sorted(map(re.escape, spellings), key=len, reverse=True)
        self._words = re.compile("|".join(longest_first), re.IGNORECASE) if spellings else None

    def is_whole(self, seq: int, role: str) -> bool:
        """Whether the whole text of a message is left out."""
        return seq in self._choice.seqs or role in self._choice.roles

    def text(self, text: str) -> str:
        """Return a text with marks in the place of what is masked."""
        if self._words:
            text = self._words.sub(lambda match: self._mark("word", self._word(match[0])), text)
        for kind, pattern in KINDS.items():
            if kind in self._choice.kinds:
                text = pattern.sub(partial(self._of_kind, kind), text)
        return text

    def data(self, value: Any) -> Any:
        """Return the same for each text of a JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(each) for each in value]
        if isinstance(value, dict):
            return {name: self.data(each) for name, each in value.items()}
        return value

    def _word(self, found: str) -> str:
        return self._spellings.get(found.lower(), found)

    def _of_kind(self, kind: str, match: re.Match[str]) -> str:
        term = match[0]
        is_card = kind == "card" and not _has_check_digit(term)
        return term if is_card or term.startswith("#A") else self._mark(kind, term)

    def _mark(self, kind: str, term: str) -> str:
        key = re.sub(r"[ ()./-]", "", term).lower() if kind in ("card", "phone") else term.lower()
        if key not in self._marks:
            self._marks[key] = f"[redacted {kind} #A{len(self._marks) + 1}]"
            self.found[kind] = self.found.get(kind, 0) + 1
        return self._marks[key]


def _spellings(word: str) -> Iterable[str]:
    """Yield how texts, JSON and addresses may write a word."""
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
    """Whether the digits are those of a card, by the rule of Luhn."""
    digits = [int(each) for each in re.sub(r"\D", "", number)]
    doubled = [
        n if place % 2 == 0 else sum(divmod(2 * n, 10)) for place, n in enumerate(digits[::-1])
    ]
    return sum(doubled) % 10 == 0
