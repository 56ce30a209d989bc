"""Recognizes requests (how an assistant asks for a fact) and reminders (how a user says that a fact
was given before).

The phrases of all languages are in phrases.toml. Projects add their own with `Words`. A folded text
is in lowercase without accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from chatmemory.data_files import toml_beside
from chatmemory.messages.json_values import JsonMap, JsonValue
from chatmemory.patterns import ANY, declared_pattern

LANGUAGES = ("en", "de", "es", "fr", "pt", "it", "ja", "zh")
ANY_NUMBER = "number"  # the kind of a number or code of which nothing else is known
COUNT = "count"  # the kind of a number of things, which are named beside it
_TELLING = 4  # small words that tell the language of a text
_BETWEEN = 4  # words between a request and its noun
_BETWEEN_SIGNS = 8  # the same in signs, in languages without spaces
_WORD = declared_pattern(r"[^\W_]+")
_SENTENCES = declared_pattern(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_CLAUSE_END = declared_pattern(r"[,;:，；：、]|(?<=[.?!。？！])|\s[-–—]\s|[—(]")
_KATAKANA = {katakana: katakana - 0x60 for katakana in range(0x30A1, 0x30F7)}
_PART = declared_pattern(r"<([a-z]+)>")
CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9d"
HAS_CJK = declared_pattern(f"[{CJK}]")
_WITHOUT_SPACES = ("ja", "zh")
_ASKING = ("requests", "requests_behind", "which", "again")
_NO_LETTER = r"(?![^\W_])"
_ACCENTS = dict.fromkeys(range(0x300, 0x370))
_SIGNS = str.maketrans({"’": "'", "‘": "'", "\u00a0": " ", "\u202f": " ", "\t": " "})


@cache
def _data() -> JsonMap:
    """Return the content of phrases.toml, read at the first use."""
    return toml_beside(__file__, "phrases.toml")


@cache
def own_kinds() -> frozenset[str]:
    """Return the kinds of facts that users know about themselves, such as their telephone
    number.
    """
    return frozenset(_data()["own"]["kinds"])


@cache
def own_keys() -> frozenset[str]:
    """Return JSON keys of facts that users know about themselves, such as "zip" and "dob"."""
    return frozenset(_data()["own"]["keys"])


def narrow(text: str) -> str:
    """Return a text with ordinary characters in place of its full-width letters, digits, signs and
    spaces. The length of the text does not change.
    """
    if text.isascii():
        return text
    return text.translate(_NARROW)


_NARROW = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}


def folded(text: str) -> str:
    """Return a text in lowercase without accents."""
    if text.isascii():
        return text.lower().replace("\t", " ")
    narrowed = narrow(text).translate(_SIGNS).casefold()
    plain = unicodedata.normalize("NFD", narrowed).translate(_ACCENTS)
    return unicodedata.normalize("NFC", plain)


def in_one_kana(text: str) -> str:
    """Return a text with hiragana in place of katakana, so that names in both scripts can be
    compared.
    """
    return text.translate(_KATAKANA)


def aligned(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in lowercase without accents, and a sequence of indices in the original text.

    The sequence has one index for each character of the returned text: where this character was in
    the original text. The last item of the sequence is the length of the original text.
    """
    if text.isascii():
        return folded(text), range(len(text) + 1)
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        for each in _folded_sign(sign):
            signs.append(each)
            places.append(place)
    return "".join(signs), [*places, len(text)]


@lru_cache(maxsize=4096)
def _folded_sign(sign: str) -> str:
    return folded(sign)


@cache
def months() -> Mapping[str, int]:
    """Return a mapping from month names in all languages to the numbers of the months, from 1 to
    12. Names are in lowercase without accents.
    """
    known = (_data()[name].get("months", "").split() for name in LANGUAGES)
    return {folded(month): number for names in known for number, month in enumerate(names, 1)}


@cache
def numbers() -> Mapping[str, int]:
    """Return a mapping from words such as "three", in all languages, to the numbers from 2 to 12.
    Words are in lowercase without accents.
    """
    known = (_data()[name]["numbers"].split() for name in LANGUAGES)
    found = {folded(word): number for words in known for number, word in enumerate(words, 2)}
    return {word: number for word, number in found.items() if word not in fillers()}


def by_length(words: Iterable[str]) -> list[str]:
    """Return words sorted by length, the longest first. Words of equal length are in alphabetical
    order.
    """
    return sorted(words, key=lambda each: (-len(each), each))


def sentences_of(text: str) -> list[str]:
    return [each for each in _SENTENCES.split(text) if each.strip()]


class Noun(NamedTuple):
    """A noun that names kinds of facts, such as "order number". `start` and `end` are indices in a
    text in lowercase without accents.
    """

    start: int
    end: int
    kinds: frozenset[str]


class Nouns:
    """Nouns that name kinds of facts, such as "order number". Finds them in texts."""

    def __init__(self, by_kind: Iterable[tuple[str, Sequence[str]]]) -> None:
        kinds: defaultdict[str, set[str]] = defaultdict(set)
        for kind, nouns in by_kind:
            for noun in map(folded, nouns):
                kinds[noun].add(kind)
        by_word: defaultdict[str, list[_NounWords]] = defaultdict(list)
        signs = {noun: found for noun, found in kinds.items() if HAS_CJK.search(noun)}
        for noun in by_length(kinds.keys() - signs.keys()):
            words = tuple(_WORD.findall(noun))
            by_word[words[0]].append((words, frozenset(kinds[noun])))
        self._by_word = dict(by_word)
        plurals = (f"{word}{end}" for word in by_word if len(word) > 2 for end in "sn")
        self._firsts = frozenset((*by_word, *plurals))
        self._signs = {noun: frozenset(found) for noun, found in signs.items()}
        self._sign_pattern = declared_pattern(
            "|".join(map(re.escape, by_length(signs))) or r"(?!)", family="phrases"
        )

    def found_in(self, text: str) -> list[Noun]:
        """Return the nouns in a text, in order. Of several nouns that begin at the same index, only
        the longest is returned. The text is in lowercase without accents.
        """
        found = [*self._words_in(text)]
        if HAS_CJK.search(text):
            by_signs = self._sign_pattern.finditer(text)
            found += (Noun(*each.span(), self._signs[each[0]]) for each in by_signs)
        return sorted(found)

    def _words_in(self, text: str) -> Iterator[Noun]:
        said = _WORD.findall(text)
        if self._firsts.isdisjoint(said):
            return  # most short texts
        known, firsts, words, end = self._by_word, self._firsts, [*_WORD.finditer(text)], 0
        for at, each in enumerate(said):
            if each in firsts and words[at].start() >= end:
                for first in _singulars(each):
                    if first in known and (found := _longest(known[first], said, at)):
                        end = words[at + len(found[0]) - 1].end()
                        yield Noun(words[at].start(), end, found[1])
                        break


_NounWords = tuple[tuple[str, ...], frozenset[str]]


def _longest(nouns: Iterable[_NounWords], words: Sequence[str], at: int) -> _NounWords | None:
    """Return the longest of these nouns that begins at the word with the index `at`, or None."""
    for noun in nouns:
        size = len(noun[0])
        if size == 1:
            return noun
        here = tuple(words[at + 1 : at + size])
        is_whole = len(here) == size - 1 and here[:-1] == noun[0][1:-1]
        if is_whole and noun[0][-1] in _singulars(here[-1]):
            return noun
    return None


def _singulars(word: str) -> tuple[str, ...]:
    """Return a word, and the words of which it may be the plural."""
    return (word, word[:-1]) if len(word) > 3 and word[-1] in "sn" else (word,)


def shapes_of(kind: str) -> Sequence[str]:
    shapes: Sequence[str] = _data()["shapes"].get(kind, ("code",))
    return shapes


# Wide: the lists of phrases.toml under their names there, and two patterns made of them.
@dataclass(frozen=True, eq=False)
class Language:
    """The phrases of a language, mostly as regular expressions. phrases.toml explains the fields
    under the same names, except these:

    - `nouns`: the nouns for kinds of facts, from `kinds` in phrases.toml.
    - `behind`: the phrases of `requests_behind` in phrases.toml.
    - `any_question`: one pattern for all `questions`.
    - `may_ask`: one pattern for `questions`, `requests`, `behind`, `which` and `again`.
    - `reminders`: also finds the phrases of `rhetorical` in phrases.toml.
    """

    name: str
    nouns: Nouns
    requests: re.Pattern[str]
    behind: re.Pattern[str]
    questions: Sequence[tuple[re.Pattern[str], frozenset[str]]]
    any_question: re.Pattern[str]
    may_ask: re.Pattern[str]
    which: re.Pattern[str]
    again: re.Pattern[str]
    no_requests: re.Pattern[str]
    asking: re.Pattern[str]
    needing: re.Pattern[str]
    lacking: re.Pattern[str]
    others: re.Pattern[str]
    between: frozenset[str]
    until: re.Pattern[str]
    reminders: re.Pattern[str]
    fillers: frozenset[str]

    @classmethod
    def of(cls, name: str) -> Language:
        data = _data()[name]
        kinds = [*data["kinds"].items(), *(_data()["en"]["kinds"].items() if name != "en" else ())]
        asked = [(pattern, frozenset(kinds)) for pattern, kinds, _ in data["questions"]]
        questions = [pattern for pattern, _ in asked]
        others = {part: [each[0] for each in data[part]] for part in _ASKING}
        return cls(
            name,
            Nouns(kinds),
            _any_of(name, others["requests"]),
            _any_of(name, others["requests_behind"]),
            [(_any_of(name, [pattern]), kinds) for pattern, kinds in asked],
            _any_of(name, questions),
            _any_of(name, [*questions, *chain.from_iterable(others.values())]),
            _any_of(name, others["which"]),
            _any_of(name, others["again"]),
            _any_of(name, data["no_requests"]),
            _any_of(name, data["asking"]),
            _any_of(name, data["needing"]),
            _any_of(name, data["lacking"]),
            _any_of(name, data["others"]),
            frozenset(map(folded, data["between"])),
            _any_of(name, data["until"]),
            _any_of(name, _patterns_of(name, "reminders", "rhetorical")),
            frozenset(map(folded, data["fillers"].split())),
        )

    def request_in(self, sentence: str, own: re.Pattern[str] | None) -> tuple[frozenset[str], bool]:
        """Return the kinds of facts that a sentence asks for, and whether it only asks to repeat
        something. The second value is True for `once more, please?`, which names no kind of fact.

        The sentence is in lowercase without accents. `own` finds the project's own phrases for
        requests (`Words.requests`). It is None if there are none.
        """
        kinds: set[str] = set()
        for pattern, asked in self.questions if self.any_question.search(sentence) else ():
            if pattern.search(sentence):
                kinds |= asked
        for pattern in (self.requests, own) if own else (self.requests,):
            for found in pattern.finditer(sentence):
                kinds |= self._kinds_behind(sentence[found.end() :])
        kinds |= self._kinds_before(sentence)
        return frozenset(kinds), not kinds and self.again.search(sentence) is not None

    def without_offers(self, sentence: str) -> str:
        """Return a sentence without its offers, such as "anything else". The clauses after an offer
        are removed too, up to the next clause that asks for something.

        Nothing is left of `anything else, such as a seat?` Clauses that are left are joined by
        commas. The sentence is in lowercase without accents.
        """
        if not self.no_requests.search(sentence):
            return sentence
        kept, is_offer = [], False
        for clause in _CLAUSE_END.split(sentence):
            if self.no_requests.search(clause):
                is_offer = True
            elif not is_offer or self.may_ask.search(clause) or self.asking.search(clause):
                is_offer = False
                kept.append(clause)
        return ",".join(kept)

    def may_be_request(self, sentence: str) -> bool:
        """Return whether a sentence that is no question may be a request, such as "please send me
        your order number". The sentence is in lowercase without accents.
        """
        pattern = self.behind if self.name in _WITHOUT_SPACES else self.requests
        return pattern.search(sentence) is not None

    def _kinds_behind(self, rest: str) -> set[str]:
        """Return the kinds of facts that nouns in the rest of a sentence name. Empty if the first
        noun is not near its beginning.
        """
        if (end := self.until.search(rest)) and self.name not in _WITHOUT_SPACES:
            rest = rest[: end.start()]
        nouns = self.nouns.found_in(rest)
        if not nouns:
            return set()
        before = rest[: nouns[0].start]
        words = _WORD.findall(before)
        if self.name in _WITHOUT_SPACES:
            is_near = len(before) <= _BETWEEN_SIGNS
        else:
            is_near = len(words) <= _BETWEEN and self.between.isdisjoint(words)
        return {kind for noun in nouns for kind in noun.kinds} if is_near else set()

    def _kinds_before(self, sentence: str) -> set[str]:
        """Return the kinds of facts that nouns before a phrase such as "please" name; or those of a
        question that is only nouns.
        """
        behind = {each.start() for each in self.behind.finditer(sentence)}
        nouns = self.nouns.found_in(sentence) if behind or "?" in sentence else []
        if not nouns:
            return set()
        near = [noun for noun in nouns if not behind.isdisjoint(range(noun.end, noun.end + 2))]
        is_only = "?" in sentence and self._has_only(sentence, nouns)
        if self.name in _WITHOUT_SPACES:
            return {kind for noun in (nouns if near else ()) for kind in noun.kinds}
        if near and not self._has_only(sentence[: near[0].start], ()):
            near = []  # "cancel my order, please" asks for no order
        return {kind for noun in (nouns if is_only else near) for kind in noun.kinds}

    def _has_only(self, text: str, nouns: Sequence[Noun]) -> bool:
        """Return whether a text has nothing but these nouns and fillers."""
        rest, end = [], 0
        for noun in nouns:
            rest.append(text[end : noun.start])
            end = noun.end
        rest.append(text[end:])
        return all(word in self.fillers for part in rest for word in _WORD.findall(part))


def _any_of(language: str, patterns: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of these patterns, as whole words of a folded text."""
    either = _either(patterns)
    if language not in _WITHOUT_SPACES:
        either = rf"(?<![^\W_])(?:{either}){_NO_LETTER}"
    return declared_pattern(either, family="phrases")


def _either(patterns: Iterable[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)"


@cache
def languages() -> tuple[Language, ...]:
    return tuple(map(Language.of, LANGUAGES))


@cache
def all_nouns() -> Nouns:
    """Return the nouns of all languages that name kinds of facts."""
    return Nouns(item for name in LANGUAGES for item in _data()[name]["kinds"].items())


@cache
def fillers() -> frozenset[str]:
    """Return the small words of all languages, such as "the" and "please". A short answer may have
    small words beside its value, as in "blue, please".
    """
    return frozenset().union(*(each.fillers for each in languages()))


@cache
def sign_fillers() -> tuple[str, ...]:
    """Return the small words of Japanese and Chinese, such as "です", the longest first. A short
    answer may have small words beside its value.
    """
    return tuple(by_length(each for each in fillers() if HAS_CJK.search(each)))


@dataclass(frozen=True)
class Phrases:
    """Phrases in all languages, as regular expressions that search a text.

    - `with_spaces`: finds the phrases of languages with spaces.
    - `all`: finds the phrases of all languages. It is used for texts with Chinese or Japanese
      characters.
    """

    with_spaces: re.Pattern[str]
    all: re.Pattern[str]

    def search(self, text: str, start: int = 0, end: int = ANY) -> re.Match[str] | None:
        return self._for(text).search(text, start, end)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._for(text).finditer(text)

    def _for(self, text: str) -> re.Pattern[str]:
        return self.all if HAS_CJK.search(text) else self.with_spaces


def _in_all_languages(*parts: str, behind: str = _NO_LETTER) -> Phrases:
    """Return the phrases under some keys of phrases.toml, in all languages. In languages with
    spaces, each must be followed by `behind`.
    """
    words: list[str] = []
    signs: list[str] = []
    for name in LANGUAGES:
        found = signs if name in _WITHOUT_SPACES else words
        found += _patterns_of(name, *parts)
    with_spaces = rf"(?<![^\W_])(?:{_either(words)}){behind}"
    patterns = (with_spaces, f"{with_spaces}|{_either(signs)}")
    return Phrases(*(declared_pattern(each, family="phrases") for each in patterns))


def _patterns_of(language: str, *groups: str) -> list[str]:
    """Return the patterns under some keys of phrases.toml, in one language."""
    data = _data()[language]
    parts: Mapping[str, str] = data.get("parts", {})
    phrases = (phrase for group in groups for phrase in data.get(group, ()))
    patterns = (each if isinstance(each, str) else each[0] for each in phrases)
    return [_PART.sub(lambda found: parts[found[1]], each) for each in patterns]


@cache
def rhetorical() -> Phrases:
    """Return the questions by which users remind the assistant that they said something before,
    such as "didn't I tell you that?".
    """
    return _in_all_languages("rhetorical")


@cache
def reported() -> Phrases:
    """Return the phrases that introduce what somebody else said: "he told me", "she asked"."""
    return _in_all_languages("reported")


@cache
def anew() -> Phrases:
    """Return the words which show that an answer is a new wish and not a repetition, such as
    "another" or "this time".
    """
    return _in_all_languages("anew")


@cache
def denials() -> Phrases:
    """Return the words with which users contradict, such as "not" and "but"."""
    return _in_all_languages("denials")


@cache
def consents() -> Phrases:
    """Return the words for yes and no."""
    return _in_all_languages("consents")


@cache
def refusals() -> Phrases:
    """Return the phrases by which users say that a fact is not at hand, such as "no idea"."""
    return _in_all_languages("refusals")


@cache
def introductions() -> Phrases:
    """Return the phrases before a speaker's own name, such as "my name is"."""
    return _in_all_languages("names", behind="")


@cache
def introductions_behind() -> Phrases:
    """Return the phrases after a speaker's own name, in languages that put them there."""
    return _in_all_languages("names_behind")


@cache
def own_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    return _any_of("", (re.escape(folded(each)) for each in phrases))


@lru_cache(maxsize=64)
def spoken_in(text: str) -> Sequence[Language]:
    """Return the languages in which a text may be written. The text is in lowercase without
    accents.

    - If the text has Chinese or Japanese characters, all languages are returned.
    - Otherwise, only languages with spaces between words are returned. A language is left out if
      the text has more than twice as many small words, such as "the", of another language.
    - If no language has four or more small words in the text, all languages with spaces are
      returned.
    """
    if HAS_CJK.search(text):
        return languages()
    words = list(filter(fillers().__contains__, _WORD.findall(text)))
    counts = {
        each: sum(map(each.fillers.__contains__, words))
        for each in languages()
        if each.name not in _WITHOUT_SPACES
    }
    most = max(counts.values())
    return tuple(each for each, count in counts.items() if most < _TELLING or 2 * count >= most)


def reminders_in(text: str, own: tuple[str, ...] = ()) -> list[tuple[int, int]]:
    """Return the spans of the reminders in a text, such as "as I said", in order.

    The text is in lowercase without accents. `own` are the project's own phrases for reminders
    (`Words.reminders`).
    """
    patterns = [each.reminders for each in spoken_in(text)]
    if own:
        patterns.append(own_phrases(own))
    spans = [found.span() for each in patterns for found in each.finditer(text)]
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=itemgetter(0)):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def examples() -> Iterator[tuple[str, str, str, JsonValue]]:
    """Yield the examples in phrases.toml, for tests. Each is a tuple: its language, its key (such
    as "requests"), its text, and its kinds of facts. The kinds are None unless the key is
    "questions".
    """
    for name in LANGUAGES:
        data = _data()[name]
        for part in ("requests", "requests_behind", "which", "again", "reminders", "rhetorical"):
            yield from ((name, part, each[1], None) for each in data[part])
        yield from ((name, "questions", each[2], each[1]) for each in data["questions"])
        yield from ((name, "controls", each, None) for each in data["controls"])
