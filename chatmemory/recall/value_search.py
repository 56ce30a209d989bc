"""The search for values in texts.

Values are found as whole words of normalized texts: capitals, accents, spaces, hyphens and the
grouping of digits do not matter, nor do the ending of a plural and a unit behind a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from chatmemory.patterns import declared_pattern
from chatmemory.recall.days import days_in
from chatmemory.recall.phrases import CJK, HAS_CJK, folded
from chatmemory.recall.values import UNIT, Value, signs_of

MOST_VALUES = 200  # of a conversation; texts are searched for all of them
_BETWEEN_WORDS = 2  # words that may stand between two words of an address
_BETWEEN_SIGNS = r"[ \u00a0\-‐–./()_:,+#]{0,2}"
_SIGN = rf"[^\W_{CJK}]"  # of a language with spaces
_BEHIND = r"(?![0-9a-z])(?![\-_.@+:][0-9a-z])"
_ENDINGS = "ens"  # letters of the endings of plurals and cases
_SHORTEST_STEM = 6
_WORD = declared_pattern(r"[^\W_]+")


class Search:
    """Searches texts for some values, at most MOST_VALUES."""

    def __init__(self, values: Iterable[Value]) -> None:
        by_name = {value.name: value for value in values}
        self._values = [*by_name.values()][:MOST_VALUES]
        self._dates = {each.key: each.name for each in self._values if each.shape == "date"}
        others = [each for each in self._values if each.shape != "date"]
        self._places = [each for each in others if each.shape == "place"]
        self._by_signs = [(_signs(each), each) for each in others if each.shape != "place"]

    def __bool__(self) -> bool:
        return bool(self._values)

    def found_in(self, text: str) -> set[str]:
        """Return the names of the values that a text holds."""
        if not self._values or not text:
            return set()
        searched = Searched(text)
        has = searched.signs
        likely = [each for signs, each in self._by_signs if signs in has]
        found = {each.name for each in (*likely, *self._places) if searched.holds(each)}
        if self._dates:
            found.update(name for key, name in self._dates.items() if key in searched.days)
        return found


class Searched:
    """A text in which many values are looked for, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def lowered(self) -> str:
        return folded(self._text)

    @cached_property
    def signs(self) -> str:
        return signs_of(self.lowered)

    @cached_property
    def days(self) -> set[str]:
        return {each.key for each in days_in(self._text)}

    def holds(self, value: Value) -> bool:
        """Return whether the text holds a value."""
        if not self._text:
            return False
        if value.shape == "date":
            return value.key in self.days
        return _holds(value, self.lowered, self.signs)


def _holds(value: Value, lowered: str, signs: str) -> bool:
    if value.shape == "place":
        words = value.key.split()
        return all(word in lowered for word in words) and _has_words(lowered, words)
    if value.shape == "words" and not HAS_CJK.search(value.key):
        if not all(stem_of(word) in lowered for word in value.key.split()):
            return False
    elif _signs(value) not in signs:
        return False
    return _pattern(value.shape, value.key).search(lowered) is not None


def _signs(value: Value) -> str:
    """Return the letters and digits of a value's key: a text that holds the value has them."""
    return _without_others(value.key)


@lru_cache(maxsize=1024)
def _without_others(key: str) -> str:
    return signs_of(key)


def _has_words(lowered: str, words: Sequence[str]) -> bool:
    """Return whether a text has the words of an address in order, with at most two others between
    them.
    """
    if any(map(HAS_CJK.search, words)):
        return _pattern("words", " ".join(words)).search(lowered) is not None
    said = _WORD.findall(lowered)
    return any(
        word == words[0] and _follow(said, start + 1, words[1:]) for start, word in enumerate(said)
    )


def _follow(said: Sequence[str], at: int, words: Sequence[str]) -> bool:
    for word in words:
        near = said[at : at + _BETWEEN_WORDS + 1]
        if word not in near:
            return False
        at += near.index(word) + 1
    return True


@lru_cache(maxsize=1024)
def _pattern(shape: str, key: str) -> re.Pattern[str]:
    """Return the pattern that finds a value in a folded text. Its first sign stands before the test
    of what is before it, for which a search is fast.
    """
    first, rest = re.escape(key[:1]), key[1:]
    if HAS_CJK.search(key):
        pattern = r"[\W_]*".join(map(re.escape, key.replace(" ", "")))
    elif shape == "code":
        before = rf"{first}(?<![0-9a-z]{first})(?<![0-9a-z][\-_.@+]{first})"
        behind = rf"(?:{_BEHIND}|(?={UNIT}(?![0-9a-z])))" if key.isdecimal() else _BEHIND
        pattern = before + _BETWEEN_SIGNS.join(["", *rest]) + behind
    elif shape in ("mail", "link"):
        begins = rf"{first}(?:(?<![0-9a-z_.+\-@]{first})|(?<=www\.{first}))"
        pattern = rf"{begins}{re.escape(rest)}(?![0-9a-z_@]|[.\-][0-9a-z])"
    else:
        begin, *others = key.split(" ")
        words = r"[\W_]{1,3}".join([_inflected(begin)[len(first) :], *map(_inflected, others)])
        pattern = f"{first}(?<!{_SIGN}{first}){words}(?!{_SIGN})"
    return declared_pattern(pattern, family="a value")


@lru_cache(maxsize=4096)
def stem_of(word: str) -> str:
    """Return a folded word without the ending of a plural or a case, if it is long."""
    stem = word.rstrip(_ENDINGS)
    return stem if len(stem) >= _SHORTEST_STEM else word


def _inflected(word: str) -> str:
    stem = stem_of(word)
    is_long = len(stem) >= _SHORTEST_STEM and stem.isalpha()
    return re.escape(stem) + f"[{_ENDINGS}]{{0,4}}" if is_long else re.escape(word)
