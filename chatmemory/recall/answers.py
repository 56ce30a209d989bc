"""Finds answers: values that a user repeats, either because the assistant asked for the value, or
with a reminder such as "as I said".

An answer repeats a value if an earlier message of the user gave this value for the kind of fact
that the assistant asks for. Whether memory had lost the value is not known here: a replay or the
ledger shows that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, text_of
from chatmemory.recall.asked import (
    AllGiven,
    Given,
    answers_openly,
    asks_for,
    is_unlikely,
    opens_with,
)
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted
from chatmemory.recall.reminded import reminded_in
from chatmemory.recall.requests import Asked, asked_in
from chatmemory.recall.sessions import is_by_program
from chatmemory.recall.user_texts import Said, UserText, user_text
from chatmemory.recall.value_search import Search
from chatmemory.recall.values import Value, longest_first, words_in

_NO_KINDS: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """A value that a user repeats.

    `is_requested` means that the assistant asked for the value, and `is_reminded` that the user
    reminds the assistant of having given it. If both are False, nobody forced the repetition.
    """

    value: Value
    is_requested: bool = False
    is_reminded: bool = False

    @property
    def is_forced(self) -> bool:
        return self.is_requested or self.is_reminded


class Answers:
    """The values that users repeat in the messages of a conversation. `at` maps the position of a
    message to the values that the message repeats.
    """

    def __init__(self, messages: Sequence[ChatMessage], words: Words = NO_WORDS) -> None:
        reader = _Reader(messages, words)
        self.at: Mapping[int, Sequence[Answer]] = {
            position: found
            for position, message in enumerate(messages)
            if is_written_by_user(message) and (found := reader.read(position))
        }
        self.search = Search(each.value for found in self.at.values() for each in found)


def is_written_by_user(message: ChatMessage) -> bool:
    """Return whether a user typed a message: it is neither pasted nor written by a program."""
    is_user = isinstance(message, UserMessage) and not is_by_program(message)
    return is_user and isinstance(message, UserMessage) and not is_pasted(message)


def nameable_values(text: str, words: Words = NO_WORDS) -> list[Value]:
    """Return all values in a user's text that another message may repeat: codes, names, addresses
    and short answers.

    The text is also read without its reminders, such as "as I said", so that these do not hide a
    short answer.
    """
    read = user_text(text, words.reminders)
    whole = words_in(text) if read.reminders else []
    phrases = [*read.first_phrases, *reminded_in(read).phrases, *read.contradicting]
    return [*read.codes, *whole, *read.words, *phrases]


class _Rules:
    """What makes a value of one text of a user an answer."""

    def __init__(self, text: UserText, asked: Asked) -> None:
        self._text, self._requests, self._question = text, asked.requests, asked.question
        self._reminded = reminded_in(text)

    @property
    def take_words(self) -> bool:
        """Whether more than codes may be an answer."""
        question = self._question
        is_asked = question is not None and not (question.is_silent and self._text.is_long)
        return is_asked or bool(self._reminded)

    def phrases(self) -> list[Value]:
        is_asked = self._question is not None and self._question.is_request
        return [*self._reminded.phrases, *(self._text.first_phrases if is_asked else ())]

    def corrections(self) -> list[Value]:
        """Return the words by which the text may correct a message that asked for nothing."""
        is_asked = self._question is not None and not self._question.is_silent
        return [] if is_asked or self._reminded else self._text.contradicting

    def corrects(self, value: Value, given: Iterable[Given]) -> bool:
        """Return whether the user says words again that nobody says again by chance."""
        text, (start, end) = self._text, value.place
        is_other = text.is_reported(end) or text.quotes(start) or text.asks_back(end)
        return not is_other and is_unlikely(value, text, given)

    def by_kind(self, value: Value, given: Iterable[Given]) -> Answer:
        """Return a value with whether it is of a requested kind, and bound to a reminder."""
        is_requested = any(asks_for(each, value, self._text, given) for each in self._requests)
        is_answer = bool(self._requests)
        return Answer(value, is_requested, self._reminded.binds(value, given, is_answer=is_answer))

    def openly(self, value: Value, given: Iterable[Given]) -> Answer:
        """Return a value with whether it answers a question that names no kind."""
        question = self._question
        is_requested = question is not None and answers_openly(question, value, self._text, given)
        return Answer(value, is_requested, self._reminded.tells(value))

    def as_phrase(self, value: Value, given: Iterable[Given]) -> Answer:
        """Return words with whether they begin an answer, and whether a reminder binds them."""
        question = self._question
        is_requested = question is not None and opens_with(question, value, self._text)
        return Answer(value, is_requested, self._reminded.tells(value))


class _Reader:
    """Reads the messages that the user wrote, one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words) -> None:
        self._messages, self._words = messages, words
        self._said = Said()
        self._asked: dict[int, frozenset[str]] = {}

    def read(self, position: int) -> list[Answer]:
        text = user_text(text_of(self._messages[position]), self._words.reminders)
        rules = _Rules(text, asked_in(self._text_before(position), self._words.requests))
        values = [*text.codes, *text.words] if rules.take_words else text.codes
        known = self._known(position, longest_first(values))
        found = [*_answers(rules, known, self._known(position, rules.phrases()))]
        for value, given in self._known(position, rules.corrections()):
            if _is_free(value, found) and rules.corrects(value, given):
                found.append(Answer(value))
        self._said.add(position, text)
        return found

    def _text_before(self, position: int) -> str:
        """Return the text of the assistant's message directly before a position, or ""."""
        before = self._messages[position - 1] if position else None
        return before.text or "" if isinstance(before, AiMessage) else ""

    def _known(self, position: int, values: Iterable[Value]) -> list[_Known]:
        """Return the values that earlier texts hold, and that the assistant has not just named, the
        longest first.
        """
        held = [value for value in dict.fromkeys(values) if self._said.has(value)]
        offered = Search(held).found_in(self._text_before(position)) if held else ()
        new = longest_first(value for value in held if value.name not in offered)
        return [(value, AllGiven(partial(self._given, value))) for value in new]

    def _given(self, value: Value) -> Iterator[Given]:
        """Yield the earlier texts with a value."""
        for position in self._said.holding(value):
            yield Given(self._said.texts[position], value, self._asked_before(position))

    def _asked_before(self, position: int) -> frozenset[str]:
        """Return the kinds for which the assistant asks directly before a position."""
        if position not in self._asked:
            asked = asked_in(self._text_before(position), self._words.requests)
            kinds = (each.kinds for each in asked.requests)
            self._asked[position] = _NO_KINDS.union(*kinds)
        return self._asked[position]


_Known = tuple[Value, Iterable[Given]]


def _answers(rules: _Rules, known: Sequence[_Known], phrases: Sequence[_Known]) -> Iterator[Answer]:
    """Yield the answers of a text, whose values were said before. A value is one answer only."""
    found: list[Answer] = []
    for rule, values in (
        (rules.by_kind, known),
        (rules.openly, known),
        (rules.as_phrase, phrases),
    ):
        for value, given in values:
            if _is_free(value, found) and (answer := rule(value, given)).is_forced:
                found.append(answer)
    for value, _ in known:
        is_exact = value.shape in ("code", "mail", "link") and value.is_distinctive
        if is_exact and _is_free(value, found):
            found.append(Answer(value))
    yield from found


def _is_free(value: Value, found: Iterable[Answer]) -> bool:
    """Return whether no answer has any of these signs."""
    return all(value.end <= each.value.start or each.value.end <= value.start for each in found)
