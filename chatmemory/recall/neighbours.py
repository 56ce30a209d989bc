"""Finds phrases in texts: up to four words next to each other, such as `dark green`. A phrase may
be a value that a user gave.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.patterns import declared_pattern
from chatmemory.recall.phrases import CJK, HAS_CJK, all_nouns, fillers, folded
from chatmemory.recall.values import Value, stripped_of_signs

MOST_SIGNS_READ = 100  # of a part
_MOST_WORDS = 4  # words of a phrase
_MOST_SIGNS = 10  # the same in signs, in languages without spaces
_BEHIND_COPULA = ("の", "ん", "ら")  # signs behind the copula `な`, which is no part of a word
_WORD = declared_pattern(r"[^\W_]+")
_WORDS_BESIDE = declared_pattern(rf"[^\W_{CJK}]+(?:['’\-][^\W\d_{CJK}]+)*")
_RUN = declared_pattern(f"[{CJK}]{{2,}}")


def phrases_in(text: str, start: int, end: int) -> Iterator[Value]:
    """Yield the phrases between two indices of a text, as values. Only the first 100 characters
    after `start` are searched.

    - A phrase is one to four words next to each other. In a language without spaces, it is two to
      ten characters.
    - Small words, such as "the" or "please", are never in a phrase.
    - A noun for a kind of fact, such as "order number", is no phrase.
    """
    known, last = fillers(), min(end, start + MOST_SIGNS_READ)
    words: list[tuple[int, int]] = []
    for found in _WORDS_BESIDE.finditer(text, start, last):
        is_filler = folded(found[0]) in known or HAS_CJK.search(found[0]) is not None
        is_near = bool(words) and text[words[-1][1] : found.start()].isspace()
        words = [*(words if is_near else []), found.span()][-_MOST_WORDS:] if not is_filler else []
        for first in range(len(words)):
            if value := _phrase(text, words[first][0], found.end()):
                yield value
    for run in _RUN.finditer(text, start, last):
        yield from _signs_in(text, *run.span())


def _phrase(text: str, start: int, end: int) -> Value | None:
    written = text[start:end]
    key = " ".join(_WORD.findall(folded(written)))
    nouns = all_nouns().found_in(key)
    is_noun = bool(nouns) and nouns[0].start == 0 and nouns[-1].end >= len(key)
    return (
        None
        if is_noun or not any(map(str.isalpha, key))
        else Value(start, end, written, "words", key)
    )


def _signs_in(text: str, start: int, end: int) -> Iterator[Value]:
    for first in range(start, end - 1):
        for last in range(first + 2, min(end, first + _MOST_SIGNS) + 1):
            is_cut = text[last - 1] == "な" and text[last : last + 1] in _BEHIND_COPULA
            if not is_cut and stripped_of_signs(text, first, last) == (first, last):
                written = text[first:last]
                yield Value(first, last, written, "words", folded(written))
