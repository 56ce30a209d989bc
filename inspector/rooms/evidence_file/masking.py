"""Masks the terms of an evidence file: all occurrences of a term are replaced by the same mark.

Texts are searched in a normal form (see `normal`). So a term is also found with other white space,
escapes or encodings of accents. The accents themselves count: `José` does not find `Jose`. The text
around a term stays as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from chatmemory.messages.json_values import JsonValue
from chatmemory.patterns import declared_pattern
from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.normal import NormalText, normal_form

WORDS_MAX, WORD_LENGTH = 50, 200
MARGIN = 1_000  # characters behind what is shown that are searched, too
WORD = "word"
# Of these, the same term may be written with other signs between its letters and digits
_SPACED = ("card", "phone", "iban", "national id")
_OTHERS = declared_pattern(r"[\W_]")


@dataclass(frozen=True)
class Choice:
    """What somebody chose to mask: terms of these `kinds`, and these `words`. Messages with these
    `roles` or `seqs` are masked as a whole.
    """

    kinds: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    seqs: frozenset[int] = frozenset()


class _Found(NamedTuple):
    """A term in a text: its start, its end and its kind. All spellings of a term have the same
    `key`.
    """

    start: int
    end: int
    kind: str
    key: str


class Masker:
    """Replaces the chosen terms and words by marks. `found` has the number of different masked
    terms for each kind. Masked words have the kind `word`.

    With `counts_others`, terms of all other kinds are counted too, but stay in the text; see
    `left`.
    """

    def __init__(self, choice: Choice, counts_others: bool = False) -> None:
        self._choice = choice
        self._marks: dict[tuple[str, str], str] = {}
        self.found: dict[str, int] = {}
        words = {form for word in choice.words for form in _forms(word)} - {""}
        self._words = words_pattern(sorted(words, key=len, reverse=True)) if words else None
        self._kinds = [kind for kind in KINDS if kind in choice.kinds]
        self._others = [kind for kind in KINDS if kind not in choice.kinds and counts_others]
        self._left: dict[str, set[str]] = {}

    @property
    def left(self) -> dict[str, int]:
        """The number of different terms that stay in the text, for each kind that was not chosen.
        Kinds without terms are missing. Empty unless the masker has `counts_others`.
        """
        return {kind: len(self._left[kind]) for kind in self._others if kind in self._left}

    def is_whole(self, seq: int, role: str) -> bool:
        """Return whether the whole text of a message is masked, because its seq or its role was
        chosen.
        """
        return seq in self._choice.seqs or role in self._choice.roles

    def without_words(self, text: str) -> str:
        """Return a text in which only the chosen words are masked. Terms of the chosen kinds stay
        in the text. This is for texts that nobody said, such as the words of a policy.
        """
        return self._masked(text, len(text), is_only_words=True)

    def text(self, text: str, most: int | None = None) -> str:
        """Return a text with the chosen terms and words masked.

        With `most`, return only the first `most` characters of `text`; marks can make the result
        longer. A term that begins within these characters is masked even if it ends after them.
        """
        most = len(text) if most is None else most
        return self._masked(text[: most + MARGIN], most)

    def data(self, value: JsonValue) -> JsonValue:
        """Return a JSON value in whose strings the chosen terms and words are masked. The names of
        an object's members are not masked.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(each) for each in value]
        if isinstance(value, dict):
            return {name: self.data(each) for name, each in value.items()}
        return value

    def _masked(self, text: str, most: int, is_only_words: bool = False) -> str:
        kinds = () if is_only_words else self._kinds
        others = () if is_only_words else self._others
        if self._words is None and not kinds and not others:
            return text[:most]
        form = NormalText.of(text)
        found = [*_apart([*self._words_in(form), *_terms_in(form, kinds)])]
        parts, done = list[str](), 0
        for each in found:
            if each.start >= most:
                break
            parts += (text[done : each.start], self._mark(each))
            done = each.end
        for each in _beside(_apart([*_terms_in(form, others)]), found):
            if each.start < most:
                self._left.setdefault(each.kind, set()).add(each.key)
        return "".join((*parts, text[done:most]))

    def _words_in(self, form: NormalText) -> Iterator[_Found]:
        for found in self._words.finditer(form.text) if self._words else ():
            yield _Found(*form.span(*found.span()), WORD, _OTHERS.sub("", found[0].casefold()))

    def _mark(self, found: _Found) -> str:
        named = found.kind, found.key
        if named not in self._marks:
            self._marks[named] = f"[redacted {found.kind} #A{len(self._marks) + 1}]"
            self.found[found.kind] = self.found.get(found.kind, 0) + 1
        return self._marks[named]


def _forms(word: str) -> set[str]:
    """Return the normal forms of a word: of the word itself, and of its spellings in JSON, HTML and
    URLs.
    """
    spellings = word, json.dumps(word)[1:-1], escape(word), quote(word, safe="")
    return set(map(normal_form, spellings))


def words_pattern(words: list[str]) -> re.Pattern[str]:
    """Return a pattern that finds the chosen words in a text's normal form, in upper or lower case.
    A space in a word also matches `+` or nothing: `a b` finds `a+b` and `ab`.
    """
    spaced = (re.escape(word).replace(r"\ ", "[ +]?") for word in words)
    return declared_pattern("|".join(spaced), re.IGNORECASE, family="words to mask")


def _terms_in(form: NormalText, kinds: Iterable[str]) -> Iterator[_Found]:
    for name in kinds:
        kind = KINDS[name]
        for found in kind.pattern.finditer(form.text):
            if kind.is_term(found):
                group = kind.group if found[kind.group] is not None else 0
                key = found[group].casefold()
                key = _OTHERS.sub("", key) if name in _SPACED else key
                yield _Found(*form.span(*found.span(group)), name, key)


_ORDER = {kind: n for n, kind in enumerate((WORD, *KINDS))}


def _apart(found: list[_Found]) -> Iterator[_Found]:
    """Yield terms without overlaps. Overlapping terms are merged, with the kind of the longest."""
    last: _Found | None = None
    for each in sorted(found, key=lambda each: each.start):
        if last is not None and each.start < last.end:
            first = max(last, each, key=lambda each: (each.end - each.start, -_ORDER[each.kind]))
            last = first._replace(start=last.start, end=max(last.end, each.end))
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _beside(terms: Iterable[_Found], masked: Sequence[_Found]) -> Iterator[_Found]:
    """Yield the `terms` that overlap none of the `masked` terms. Both arguments are sorted by their
    position in the text.
    """
    n = 0
    for each in terms:
        while n < len(masked) and masked[n].end <= each.start:
            n += 1
        if n == len(masked) or masked[n].start >= each.end:
            yield each
