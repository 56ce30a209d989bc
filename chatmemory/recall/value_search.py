"""Searches texts for values that users gave.

A value is found as whole words. Capitals, accents, spaces, hyphens and the grouping of digits do
not matter. A plural ending, and a unit after a number, do not matter either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import compress, count, islice

from chatmemory.patterns import declared_pattern
from chatmemory.recall.days import days_in
from chatmemory.recall.kept_readings import MOST_KEPT, kept_if_short
from chatmemory.recall.numerals import numbers_in, times_in
from chatmemory.recall.phrases import CJK, HAS_CJK, folded, in_one_kana
from chatmemory.recall.values import UNIT, Value, signs_of

MOST_VALUES = 200  # of a conversation; texts are searched for all of them
_MOST_BETWEEN = 2  # words that may stand between two words of an address
_ENDINGS = "ens"  # letters of the endings of plurals and cases
_LONGEST_ENDING, _SHORTEST_STEM = 4, 6
_WORD = declared_pattern(r"[^\W_]+")
_WORD_OF_LETTERS = declared_pattern(rf"[^\W_{CJK}]+")  # of a language with spaces
_WITHIN_WORD = declared_pattern(rf"(?<=[^\W_{CJK}])")
_BETWEEN_WORDS = declared_pattern(r"[\W_]{1,3}")
_CODE = declared_pattern(r"[^\W_]++(?:[ \u00a0\-‐–./()_:,+#]{1,2}[^\W_]++)*+")
_BEFORE_CODE = declared_pattern(r"(?<![0-9a-z])(?<![0-9a-z][\-_.@+])")
_BEHIND = r"(?![0-9a-z])(?![\-_.@+:][0-9a-z])"
_BEHIND_CODE = declared_pattern(_BEHIND)
_BEHIND_NUMBER = declared_pattern(rf"{_BEHIND}|(?={UNIT}(?![0-9a-z]))")
_BEFORE_ADDRESS = declared_pattern(r"(?<![0-9a-z_.+\-@])|(?<=www\.)")
_BEHIND_ADDRESS = declared_pattern(r"(?![0-9a-z_@]|[.\-][0-9a-z])")


class Search:
    """Searches texts for values. If more than MOST_VALUES values are given, only the first
    MOST_VALUES are searched for.
    """

    def __init__(self, values: Iterable[Value]) -> None:
        by_name = {value.name: value for value in values}
        self._values = dict(islice(by_name.items(), MOST_VALUES))
        self._dates: dict[str, str] = {}
        self._times: dict[str, str] = {}
        self._numbers: dict[str, str] = {}
        self._always: list[tuple[str, Value]] = []
        self._places: list[tuple[str, str, Value]] = []
        self._by_signs: list[tuple[str, str, Value]] = []
        self._joined: defaultdict[str, list[tuple[str, Value]]] = defaultdict(list)
        self._by_stem: defaultdict[str, list[tuple[str, str, Value]]] = defaultdict(list)
        for name, each in self._values.items():
            if each.shape == "date":
                self._dates[each.key] = name
            elif each.shape == "time":
                self._times[each.key] = name
            elif HAS_CJK.search(each.key):  # a name may be in the other kana
                self._always.append((name, each))
            elif each.shape == "place":  # other words may stand between its own
                self._places.append((each.key.partition(" ")[0], name, each))
            elif each.shape == "words":
                words = each.key.split()
                stem = _bare(max(words, key=len))
                self._by_stem[stem].append((_signs(each), name, each))
                if len(words) > 1:
                    self._joined[each.key.replace(" ", "")].append((name, each))
            else:
                self._by_signs.append((_signs(each), name, each))
                if each.is_number:
                    self._numbers[each.key] = name

    def __bool__(self) -> bool:
        return bool(self._values)

    def found_in(self, text: str) -> set[str]:
        """Return the names (`Value.name`) of the values that a text contains, however the values
        are written.
        """
        if not self._values or not text:
            return set()
        read = searched(text)
        has, lowered = read.signs, read.lowered
        likely = [(name, each) for signs, name, each in self._by_signs if signs in has]
        likely += [(name, each) for first, name, each in self._places if first in lowered]
        for stem in self._by_stem.keys() & read.stems.keys() if self._by_stem else ():
            likely += [(name, each) for signs, name, each in self._by_stem[stem] if signs in has]
        for joined in self._joined.keys() & read.words if self._joined else ():
            likely += self._joined[joined]
        found = {name for name, each in (*likely, *self._always) if read.holds(each)}
        if self._dates:
            found.update(name for key, name in self._dates.items() if key in read.days)
        if self._times:
            found.update(name for key, name in self._times.items() if key in read.times)
        if self._numbers:
            found.update(name for key, name in self._numbers.items() if key in read.numbers)
        return found


@kept_if_short(2 * MOST_KEPT)
def searched(text: str) -> Searched:
    """Return a text as an object that can be searched for values. Results for short texts are
    cached.
    """
    return Searched(text)


class Searched:
    """A text that is searched for many values. Its words and letters are found once."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def lowered(self) -> str:
        return folded(self._text)

    @cached_property
    def signs(self) -> str:
        return "".join(self._words)

    @cached_property
    def times(self) -> set[str]:
        return {each.key for each in times_in(self._text)}

    @cached_property
    def numbers(self) -> set[str]:
        return set(numbers_in(self.lowered, self._words))

    @cached_property
    def _in_one_kana(self) -> str:
        return in_one_kana(self.signs)

    @cached_property
    def days(self) -> set[str]:
        return {each.key for each in days_in(self._text)}

    @cached_property
    def _different(self) -> frozenset[str]:
        return frozenset(self._words)

    @cached_property
    def _places(self) -> list[int]:
        """The indices of the letters and digits in the text."""
        return [*compress(count(), map(str.isalnum, self.lowered))]

    @cached_property
    def _words_of_letters(self) -> list[str]:
        """The words of the text in scripts with spaces."""
        has_signs = HAS_CJK.search(self.lowered)
        return _WORD_OF_LETTERS.findall(self.lowered) if has_signs else self._words

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the text, each once, in lowercase without accents. Characters of languages
        without spaces, such as Chinese, are left out.
        """
        return frozenset(self._words_of_letters)

    @cached_property
    def in_order(self) -> str:
        """The words of the text as one string, in lowercase without accents. The letters e, n and s
        at the end of each word are cut off: "Two houses" -> " two hou ".

        Characters of languages without spaces are left out.
        """
        return f" {' '.join(map(_bare, self._words_of_letters))} "

    @cached_property
    def stems(self) -> Mapping[str, Sequence[str]]:
        """The `words`, grouped by stem: {"hou": ["house", "houses"]}. A stem is a word whose final
        letters e, n and s are all cut off.
        """
        found: defaultdict[str, list[str]] = defaultdict(list)
        for word in self.words:
            found[_bare(word)].append(word)
        return found

    @cached_property
    def _words(self) -> list[str]:
        return _WORD.findall(self.lowered)

    def holds(self, value: Value) -> bool:
        """Return whether the text contains a value, however it is written."""
        if not self._text:
            return False
        if value.shape == "date":
            return value.key in self.days
        if value.shape == "time":
            return value.key in self.times
        if value.shape in ("mail", "link"):
            return self._has_address(value.key)
        if value.shape == "place":
            return self._has_place(value.key.split())
        if not value.key.isascii() and HAS_CJK.search(value.key):
            return in_one_kana(_signs(value)) in self._in_one_kana
        if value.shape == "code":
            return self._has_code(value.key) or (value.is_number and value.key in self.numbers)
        return self._has_words(value.key)

    def has_words_of(self, value: Value) -> bool:
        """Return whether the text has the words of a value in this order, whatever punctuation is
        between them.
        """
        return f" {value.key} " in self._spaced

    @cached_property
    def _spaced(self) -> str:
        return f" {' '.join(self._words)} "

    def _has_address(self, key: str) -> bool:
        return any(
            _BEFORE_ADDRESS.match(self.lowered, at)
            and _BEHIND_ADDRESS.match(self.lowered, at + len(key))
            for at in _found(key, self.lowered)
        )

    def _has_code(self, key: str) -> bool:
        """Return whether the text has a code, and not only as a part of a longer code."""
        behind = _BEHIND_NUMBER if key.isdecimal() else _BEHIND_CODE
        for at in _found(key, self.signs):
            start, end = self._places[at], self._places[at + len(key) - 1] + 1
            is_whole = _BEFORE_CODE.match(self.lowered, start) and behind.match(self.lowered, end)
            if is_whole and _CODE.fullmatch(self.lowered, start, end):
                return True
        return False

    def _has_words(self, key: str) -> bool:
        """Return whether the text has the words of a key directly after each other. Endings of
        plurals and cases do not matter.
        """
        if key in self.words:
            return True
        words = key.split()
        if len(words) == 1:
            return any(_is_inflected(each, key) for each in self.stems.get(_bare(key), ()))
        joined = "".join(words)
        if joined in self.words and len(joined) >= _SHORTEST_STEM:
            return True
        if f" {' '.join(map(_bare, words))} " not in self.in_order:
            return False
        return self._has_whole(key) or any(
            self._follow_at(at, words) for at in _found(stem_of(words[0]), self.lowered)
        )

    def _has_whole(self, key: str) -> bool:
        """Return whether the text has a key as it is, without a letter beside it."""
        start = self.lowered.find(key)
        end = start + len(key)
        beside = self.lowered[max(0, start - 1) : start] + self.lowered[end : end + 1]
        return start >= 0 and not any(map(str.isalnum, beside))

    def _follow_at(self, start: int, words: Sequence[str]) -> bool:
        if _WITHIN_WORD.match(self.lowered, start):
            return False
        for word in words:
            said = _WORD_OF_LETTERS.match(self.lowered, start)
            if not said or not _is_inflected(said[0], word):
                return False
            between = _BETWEEN_WORDS.match(self.lowered, said.end())
            start = between.end() if between else said.end()
        return True

    def _has_place(self, words: Sequence[str]) -> bool:
        """Return whether the text has the words of an address in order. At most two other words may
        be between them.
        """
        if any(map(HAS_CJK.search, words)):
            return in_one_kana("".join(words)) in self._in_one_kana
        if words[0] not in self.lowered:
            return False
        if self._has_code("".join(words)):  # `Ramipril 5 mg` is `Ramipril 5mg`
            return True
        return self._different.issuperset(words) and any(
            word == words[0] and _follow(self._words, start + 1, words[1:])
            for start, word in enumerate(self._words)
        )


def _bare(word: str) -> str:
    """Return a word without all letters at its end that endings have: two words that differ by the
    ending of a plural or a case have the same.
    """
    return word.rstrip(_ENDINGS)


def _found(part: str, text: str) -> Iterator[int]:
    """Yield the indices at which a text has a part."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _signs(value: Value) -> str:
    """Return the letters and digits of a value, which each text with the value has, too."""
    return _without_others(value.key)


@lru_cache(maxsize=1024)
def _without_others(key: str) -> str:
    return signs_of(key)


def _follow(said: Sequence[str], at: int, words: Sequence[str]) -> bool:
    for word in words:
        near = said[at : at + _MOST_BETWEEN + 1]
        if word not in near:
            return False
        at += near.index(word) + 1
    return True


@lru_cache(maxsize=4096)
def stem_of(word: str) -> str:
    """Return a word without the ending of its plural or grammatical case, such as "s" or "en". A
    short word is returned unchanged. The word is in lowercase without accents.
    """
    stem = word.rstrip(_ENDINGS)
    return stem if len(stem) >= _SHORTEST_STEM else word


def _is_inflected(said: str, word: str) -> bool:
    """Return whether two words are equal. Long words may differ by the ending of a plural or a
    case.
    """
    if said == word:
        return True
    stem = stem_of(word)
    if len(stem) < _SHORTEST_STEM or not said.startswith(stem) or not stem.isalpha():
        return False
    ending = said[len(stem) :]
    return len(ending) <= _LONGEST_ENDING and not ending.strip(_ENDINGS)
