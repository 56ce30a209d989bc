"""Searches texts for words and phrases, and returns their places. Also sorts by speaker: in search
results, messages of users and tools come first.

Case and accents do not matter, except the accents of a search for one or two letters, such as "où".
The separators of a code do not matter either: `BW583021` is found in `BW-583021`. Of a long text,
only the beginning is searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from itertools import accumulate
from unicodedata import normalize

from chatmemory.messages.message import MessageType
from chatmemory.patterns import declared_pattern

SEARCHED = 100_000  # characters of a text that are searched
LEAST_CODE = 5  # letters and digits of a code, without its separators
LEAST_WORD = 3  # characters: nearly every text has shorter ASCII words
SEPARATORS = " \u00a0\u202f-\u2010\u2011\u2012\u2013\u2014_./:#"
_ASCII_SEPARATORS = SEPARATORS.encode("ascii", "ignore")
_MARKS = range(0x300, 0x370)  # combining accents
AROUND = ".,;:!?\"'()[]{}\u2018\u2019\u201c\u201d\u2026#"  # what is no part of a word at its ends
_OTHERS = {"\u00df": "ss", "\u1e9e": "ss", "\u017f": "s", "\u0131": "i", "\u00b5": "\u03bc"}


@cache
def _plain_letters() -> Mapping[int, str | None]:
    """Return the replacement of each character that has an accent or another form of a letter."""
    found: dict[int, str | None] = {}
    for code in range(0x80, 0x2130):
        parts = normalize("NFD", chr(code))
        if code in _MARKS:
            found[code] = None
        elif parts != chr(code) and all(ord(mark) in _MARKS for mark in parts[1:]):
            found[code] = parts[0]
    return found | {ord(letter): plain for letter, plain in _OTHERS.items()}


# Only these are translated: Python needs longer for a text in which any character is not ASCII.
_NOT_ASCII = declared_pattern(r"[^\x00-\x7f]+")


def folded(text: str) -> str:
    """Return a text in lowercase without accents. The result can be longer or shorter than the
    text.
    """
    if not text.isascii():
        text = _NOT_ASCII.sub(_in_plain_letters, text)
    return text.lower().replace("ς", "σ")


def _in_plain_letters(found: re.Match[str]) -> str:
    return found[0].translate(_plain_letters()).replace("ς", "σ")


def squashed(text: str) -> str:
    """Return a text in lowercase without accents, spaces, dashes and the characters _ . / : #.

    "A-1182" -> "a1182"
    """
    return _without_separators(folded(text))


def _without_separators(text: str) -> str:
    if text.isascii():  # in a tenth of the time
        return text.encode().translate(None, _ASCII_SEPARATORS).decode()
    for separator in SEPARATORS:
        text = text.replace(separator, "")
    return text


@dataclass(frozen=True)
class Sought:
    """A search. A text matches if it contains all words, codes and letters of the search, in any
    order.

    - `words`: words or phrases in lowercase without accents. Case and accents of the text do not
      matter.
    - `codes`: codes without separators. They match with any separators, so "a1182" matches
      "A-1182".
    - `letters`: words of one or two letters with accents, such as "où". The text must have the same
      accents.
    """

    words: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()

    def is_in(self, text: str) -> bool:
        """Return whether a text matches the search. Of a long text, only the beginning is
        searched.
        """
        whole = folded(text[:SEARCHED])
        if not all(word in whole for word in self.words):
            return False
        if self.letters and not all(each in text[:SEARCHED].lower() for each in self.letters):
            return False
        if not self.codes:
            return True
        joined = _without_separators(whole)
        return all(code in joined for code in self.codes)

    @property
    def parts(self) -> list[str]:
        """The `codes`, and the `words` without separators such as spaces and dashes, the longest
        first.

        If a text matches, then `squashed(text)` contains all these parts.
        """
        parts = {*self.codes, *map(_without_separators, self.words)}
        return sorted(filter(None, parts), key=lambda part: (-len(part), part))

    @property
    def key(self) -> str:
        """The search as JSON text. `sought_by_key` turns this text into a search again."""
        return json.dumps([self.words, self.codes, self.letters])


@lru_cache(64)
def sought_by_key(key: str) -> Sought:
    """Return the search that has this `key`."""
    return Sought(*map(tuple, json.loads(key)))


@lru_cache(64)
def sought_words(text: str) -> Sought:
    """Return the search for all words of a text, in any order.

    If each word has only one or two ASCII characters, such as in "to be", return the search for the
    whole text as one phrase.
    """
    parts = [part.strip(AROUND) or part for part in text.split()]
    if not any(len(part) >= LEAST_WORD or not part.isascii() for part in parts):
        return sought_phrase(text.strip())
    return _sought(parts)


@lru_cache(64)
def sought_phrase(phrase: str) -> Sought:
    """Return the search for a phrase. If the phrase is a code such as `A-1182`, the search also
    finds `A1182` and `A/1182`.
    """
    return _sought([phrase])


def _sought(parts: Iterable[str]) -> Sought:
    words, codes, letters = dict[str, None](), dict[str, None](), dict[str, None]()
    for part in parts:
        if is_code(part):
            codes[squashed(part)] = None
        elif len(part) < LEAST_WORD and part.lower() != folded(part):
            letters[part.lower()] = None
        else:
            words[folded(part)] = None
    return Sought(tuple(words), tuple(codes), tuple(letters))


def is_code(part: str) -> bool:
    """Return whether a word looks like a code, such as `A-1182`: it has a digit, or a separator
    inside. It neither begins nor ends with a separator, and has at least LEAST_CODE characters
    besides its separators.
    """
    inside = part.strip(SEPARATORS)
    has_separator = any(each in SEPARATORS for each in inside)
    is_one = inside == part and not any(map(str.isspace, part))
    is_like_it = has_separator or any(map(str.isdigit, part))
    return is_one and is_like_it and len(squashed(part)) >= LEAST_CODE


def has_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains a phrase. An empty phrase is in every text.

    Case and accents do not matter, except the accents of a phrase of one or two letters, such as
    "où". If the phrase is a code such as `A-1182`, its separators do not matter.
    """
    return sought_phrase(phrase).is_in(text)


def phrase_place(text: str, phrase: str) -> slice | None:
    """Return the slice of a text where a phrase first occurs; None if it does not occur."""
    text, sought = text[:SEARCHED], sought_phrase(phrase)
    places = list(_places(text, sought))
    return places[0] if places else None


def word_places(text: str, words: str) -> list[slice]:
    """Return the slices of a text where searched words occur, in order and without overlaps. Empty
    if no word occurs.

    If the text contains `words` as one phrase, return only the slice of the phrase. Otherwise
    return the first occurrence of each word.
    """
    if whole := phrase_place(text, words.strip()):
        return [whole]
    found = _places(text[:SEARCHED], sought_words(words))
    places = sorted(found, key=lambda each: (each.start, -each.stop))
    apart: list[slice] = []
    for place in places:
        if not apart or place.start >= apart[-1].stop:
            apart.append(place)
    return apart


def _places(text: str, sought: Sought) -> Iterator[slice]:
    """Yield the slice where each word, code or letter of a search first occurs in a text."""
    ways: list[tuple[tuple[str, ...], Callable[[str], str]]] = [
        (sought.words, folded),
        (sought.codes, squashed),
        (sought.letters, str.lower),
    ]
    for parts, fold in ways:
        for part in parts:
            if place := _place(text, part, fold):
                yield place


def _place(text: str, sought: str, fold: Callable[[str], str]) -> slice | None:
    """Return the slice of `text` where `sought` first occurs after `text` is folded by `fold`."""
    whole = fold(text)
    start = whole.find(sought)
    if start < 0 or not sought:
        return None
    if len(whole) == len(text):
        return slice(start, start + len(sought))
    ends = list(accumulate(len(fold(character)) for character in text))
    first = next(n for n, end in enumerate(ends) if end > start)
    last = next(n for n, end in enumerate(ends) if end >= start + len(sought))
    return slice(first, last + 1)


class Speaker(IntEnum):
    """Who said a message. Search results are sorted by this number, among other things: lower
    numbers come first.

    - `OTHERS`: users and tools. They come before the assistant, who often repeats what they said.
    - `ASSISTANT`: the assistant. Custom messages count as messages of the assistant.
    - `CLIENT`: a program that put the message into memory.
    """

    OTHERS = 0
    ASSISTANT = 1
    SYSTEM = 2
    CLIENT = 3


_SPEAKERS = {
    MessageType.USER: Speaker.OTHERS,
    MessageType.TOOL_EXECUTION_RESULT: Speaker.OTHERS,
    MessageType.CUSTOM: Speaker.ASSISTANT,
    MessageType.AI: Speaker.ASSISTANT,
    MessageType.SYSTEM: Speaker.SYSTEM,
}


def speaker_of(type: MessageType, is_injected: bool = False) -> Speaker:
    """Return who said a message of this type. With `is_injected`, return CLIENT: a client put the
    message into memory.
    """
    return Speaker.CLIENT if is_injected else _SPEAKERS[type]
