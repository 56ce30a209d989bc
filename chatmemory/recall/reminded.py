"""Finds values that a user repeats with a reminder, such as "as I said"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from chatmemory.patterns import declared_pattern
from chatmemory.recall.asked import Given
from chatmemory.recall.kept_readings import MOST_KEPT, KeptReading
from chatmemory.recall.neighbours import phrases_in
from chatmemory.recall.phrases import HAS_CJK, fillers, folded, reported, rhetorical
from chatmemory.recall.user_texts import UserText, sentences
from chatmemory.recall.values import Value, spans_between

_BEHIND = 100  # signs behind a reminder in which a value is bound to it
_BEFORE = 60
_FEW_WORDS = 3  # words beside a reminder in a sentence that has no fact of its own
_FEW_SIGNS = 8  # the same in signs, in languages without spaces
_SHORTEST_CODE = 3
_SHORTEST_WORD = 5
_IS_ASKED = declared_pattern(r"(?<![?!])\?\Z")  # not `??`, with which nobody waits for an answer
_CLAUSE_END = declared_pattern(r"[,;:¿，；：、—]| [-–] ")
_WORDS_OF_QUESTION = 2  # words of a clause that asks by itself
_WORD = declared_pattern(r"[^\W_]+")


class Reminded:
    """Finds the values in a user's text that are near a reminder, such as "as I said".

    If the sentence with the reminder says little else, the sentences beside it count as near.
    """

    def __init__(self, text: UserText) -> None:
        self._text = text
        self._parts = [*_parts_of(text)] if text.reminders else []

    def __bool__(self) -> bool:
        return bool(self._parts)

    @cached_property
    def phrases(self) -> list[Value]:
        """The phrases near a reminder, such as "as I said", as values. A phrase is one to four
        words next to each other, without small words such as "the".

        If there is a reminder, the phrases of all very short sentences are included too.
        """
        spans = sentences(self._text.text) if self._parts else ()
        short = [span for span in spans if _has_few_words(self._text.plain[slice(*span)])]
        parts = dict.fromkeys([*self._parts, *short])
        return [each for part in parts for each in phrases_in(self._text.plain, *part)]

    def binds(self, value: Value, given: Iterable[Given], *, is_answer: bool) -> bool:
        """Return whether a reminder in the text refers to `value`. `given` are the earlier texts in
        which the user gave the value.

        The value must be near a reminder or be a clause of its own, and one of these must be true:

        - The value is exact, such as a date, an email address, or a code of at least three
          characters.
        - The assistant had asked for something (`is_answer`), and the value is the whole text.
        - This text and one of `given` name the same kind of fact near the value, such as "order
          number". For a code, the same word beside the code is enough.
        """
        return self._has(value) and (
            (is_answer and value.is_whole) or _is_exact(value) or self._is_alike(value, given)
        )

    def tells(self, value: Value) -> bool:
        """Return whether a reminder in the text, such as "as I said", refers to `value`. Only for
        values that are words, such as a color or an address. For codes and other exact values, use
        `binds`.
        """
        return self._has(value) and (
            _is_telling(value)
            or (len(value.key) >= _SHORTEST_CODE and self._text.stands_alone(*value.place))
        )

    def _has(self, value: Value) -> bool:
        if not self._parts:
            return False
        is_here = any(start <= value.start and value.end <= end for start, end in self._parts)
        return is_here or self._text.stands_alone(*value.place)

    def _is_alike(self, value: Value, given: Iterable[Given]) -> bool:
        own = self._text.kinds_of(*value.place)
        beside = self._text.words_beside(*value.place)
        return any(
            own & each.kinds
            or (value.shape == "code" and beside & each.text.words_beside(*each.place))
            for each in given
        )


def _is_exact(value: Value) -> bool:
    is_code = value.shape == "code" and len(value.text) >= _SHORTEST_CODE
    return is_code or value.is_distinctive or value.shape in ("mail", "link", "date", "time")


def _is_telling(value: Value) -> bool:
    """Return whether a value in words is a fact beside a reminder. Small words alone are none."""
    if value.shape == "place" or HAS_CJK.search(value.key):
        return True
    words = [word for word in value.key.split() if word not in fillers()]
    return value.shape == "words" and (
        max(map(len, words), default=0) >= _SHORTEST_WORD or len(words) > 1
    )


def _parts_of(text: UserText) -> Iterator[tuple[int, int]]:
    spans = [*sentences(text.text)]
    for number, (start, end) in enumerate(spans):
        found = next((each for each in text.reminders if start <= each[0] < end), None)
        if found is not None:
            end = start + _end_of_statement(text.text[start:end])
        if found is None or found[1] > end or _is_reported(text, start, found[0]):
            continue
        yield found[0], min(end, found[1] + _BEHIND)
        yield max(start, found[0] - _BEFORE), found[0]
        if _has_few_words(text.plain[start:end]):
            yield from spans[max(0, number - 1) : number] + spans[number + 1 : number + 2]


def _end_of_statement(sentence: str) -> int:
    """Return where the statement in a sentence ends: before a last clause that asks something."""
    asked = folded(sentence).rstrip()
    if not _IS_ASKED.search(asked) or rhetorical().search(asked):
        return len(sentence)
    *_, (start, _) = spans_between(_CLAUSE_END, sentence)
    is_question = len(_WORD.findall(sentence[start:])) >= _WORDS_OF_QUESTION
    return start if is_question else 0


def _has_few_words(text: str) -> bool:
    words = [word for word in _WORD.findall(text.lower()) if word not in fillers()]
    return len(words) < _FEW_WORDS and (not HAS_CJK.search(text) or len(text.strip()) < _FEW_SIGNS)


def _is_reported(text: UserText, start: int, end: int) -> bool:
    """Return whether the words before a reminder say that somebody else speaks, such as "he told
    me".
    """
    return reported().search(folded(text.text[start:end])) is not None


# Finds the values near a text's reminders, such as "as I said". Results for short texts are kept.
reminded_in = KeptReading(Reminded, MOST_KEPT, lambda text: len(text.text))
