"""Finds answers: values that a user gives again. Each answer is one of these:

- a value for which the assistant asked
- a value with a reminder, such as "as I said"
- an email address, a URL or a distinctive code
- a name, or a phrase of long words, in a text that contradicts the assistant

Whether memory had lost the value is not decided here, but by a replay or the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, text_of
from chatmemory.recall.asked import (
    AllGiven,
    Given,
    answers_openly,
    asks_for,
    is_unlikely,
    may_answer_openly,
    may_ask_for,
    may_be_unlikely,
    opens_with,
)
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted
from chatmemory.recall.reminded import reminded_in
from chatmemory.recall.requests import Asked, asked_in
from chatmemory.recall.sessions import is_by_program
from chatmemory.recall.user_texts import Said, UserText, user_text
from chatmemory.recall.value_search import Search
from chatmemory.recall.values import MOST_CANDIDATES, Value, longest_first, words_in

_NO_KINDS: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """A value that a user gives again.

    - `is_requested`: whether the assistant asked for the value.
    - `is_reminded`: whether the user gives the value with a reminder, such as "as I said".

    If neither is True, nothing forced the user to repeat the value.
    """

    value: Value
    is_requested: bool = False
    is_reminded: bool = False

    @property
    def is_forced(self) -> bool:
        return self.is_requested or self.is_reminded


class Answers:
    """The answers in a conversation. `at` maps the position of a user message to its answers;
    messages without answers are left out. `search` finds the values of all answers in other texts.
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
    """Return whether a user typed a message. False for a pasted text, and for a message that a
    program wrote.
    """
    is_user = isinstance(message, UserMessage) and not is_by_program(message)
    return is_user and isinstance(message, UserMessage) and not is_pasted(message)


def nameable_values(text: str, words: Words = NO_WORDS) -> list[Value]:
    """Return all values in a user's text that may be answers: codes, names, addresses, short
    answers and phrases.

    A phrase is a few words next to each other. Phrases are taken from the first clause, and from
    near a reminder such as "as I said". If the text has a contradicting word, such as "not" or
    "but", phrases are taken from every sentence.
    """
    read = user_text(text, words.reminders)
    whole = words_in(text) if read.reminders else []
    phrases = [*read.first_phrases, *reminded_in(read).phrases, *read.contradicting]
    return [*read.codes, *whole, *read.words, *phrases]


class _Rules:
    """Decides which values in a user's text are answers to the assistant's last message."""

    def __init__(self, text: UserText, asked: Asked) -> None:
        self._text, self._requests, self._question = text, asked.requests, asked.question
        self._reminded = reminded_in(text)

    @property
    def take_words(self) -> bool:
        """Whether values other than codes can be answers. This needs a question, or a reminder."""
        question = self._question
        is_asked = question is not None and not (question.is_silent and self._text.is_long)
        return is_asked or bool(self._reminded)

    def may_take(self, value: Value) -> bool:
        """Return whether a value may be an answer, whatever earlier texts say."""
        question = self._question
        return (
            _is_exact(value)
            or bool(self._reminded)
            or any(may_ask_for(each, value, self._text) for each in self._requests)
            or (question is not None and may_answer_openly(question, value, self._text))
        )

    def may_take_phrase(self, value: Value) -> bool:
        """Return whether words may be an answer, whatever earlier texts say."""
        return self.as_phrase(value).is_forced

    def phrases(self) -> list[Value]:
        is_asked = self._question is not None and self._question.is_request
        return [*self._reminded.phrases, *(self._text.first_phrases if is_asked else ())]

    def corrections(self) -> list[Value]:
        """Return the words by which a text contradicts an assistant that asked nothing. [] if it
        asked.
        """
        is_asked = self._question is not None and not self._question.is_silent
        return [] if is_asked or self._reminded else self._text.contradicting

    def may_correct(self, value: Value) -> bool:
        """Return whether words may be a correction, whatever earlier texts say."""
        text, (start, end) = self._text, value.place
        if not may_be_unlikely(value, text) or text.asks_back(end):
            return False
        return not (text.quotes(start) or text.is_reported(end))

    def corrects(self, value: Value, given: Iterable[Given]) -> bool:
        """Return whether a contradicting user repeats words that are unlikely to be equal by
        chance.
        """
        return is_unlikely(value, self._text, given) and self.may_correct(value)

    def by_kind(self, value: Value, given: Iterable[Given]) -> Answer:
        """Return a value as an `Answer`, with whether a request names the value's kind of fact, and
        whether a reminder refers to the value.
        """
        is_requested = any(asks_for(each, value, self._text, given) for each in self._requests)
        is_answer = bool(self._requests)
        return Answer(value, is_requested, self._reminded.binds(value, given, is_answer=is_answer))

    def openly(self, value: Value, given: Iterable[Given]) -> Answer:
        """Return a value as an `Answer`, with whether it answers a question that names no kind of
        fact.
        """
        question = self._question
        is_requested = question is not None and answers_openly(question, value, self._text, given)
        return Answer(value, is_requested, self._reminded.tells(value))

    def as_phrase(self, value: Value, given: Iterable[Given] = ()) -> Answer:
        """Return a phrase as an `Answer`, with whether it begins the answer to a question, and
        whether a reminder refers to it.
        """
        question = self._question
        is_requested = question is not None and opens_with(question, value, self._text)
        return Answer(value, is_requested, self._reminded.tells(value))


class _Reader:
    """Reads the messages that the user typed, one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words) -> None:
        self._messages, self._words = messages, words
        self._said = Said()
        self._asked: dict[int, frozenset[str]] = {}

    def read(self, position: int) -> list[Answer]:
        text = user_text(text_of(self._messages[position]), self._words.reminders)
        rules = _Rules(text, asked_in(self._text_before(position), self._words.requests))
        values = [*text.codes, *text.words] if rules.take_words else text.codes
        known = self._known(position, longest_first(values), rules.may_take)
        phrases = self._known(position, rules.phrases(), rules.may_take_phrase)
        found = [*_answers(rules, known, phrases)]
        for value, given in self._known(position, rules.corrections(), rules.may_correct):
            if _is_free(value, found) and rules.corrects(value, given):
                found.append(Answer(value))
        self._said.add(position, text)
        return found

    def _text_before(self, position: int) -> str:
        """Return the text of the message directly before a position if it is the assistant's, else
        "".
        """
        before = self._messages[position - 1] if position else None
        return before.text or "" if isinstance(before, AiMessage) else ""

    def _known(
        self, position: int, values: Iterable[Value], may_count: Callable[[Value], bool]
    ) -> list[_Known]:
        """Return the values that the user gave before, the longest first, each with the earlier
        texts. Values that the assistant has just named are left out.

        So are values that may not count by their own text, unless there are more values than are
        returned: then the longest ones are chosen first.
        """
        likely = [*dict.fromkeys(values)]
        if len(likely) <= MOST_CANDIDATES:
            likely = [*filter(may_count, likely)]
        held = [value for value in likely if self._said.has(value)]
        offered = Search(held).found_in(self._text_before(position)) if held else ()
        new = longest_first(value for value in held if value.name not in offered)
        return [(value, AllGiven(partial(self._given, value))) for value in new]

    def _given(self, value: Value) -> Iterator[Given]:
        """Yield the earlier texts of the user that contain a value."""
        for position in self._said.holding(value):
            yield Given(self._said.texts[position], value, self._asked_before(position))

    def _asked_before(self, position: int) -> frozenset[str]:
        """Return the kinds of facts for which the assistant asks directly before a position."""
        if position not in self._asked:
            asked = asked_in(self._text_before(position), self._words.requests)
            kinds = (each.kinds for each in asked.requests)
            self._asked[position] = _NO_KINDS.union(*kinds)
        return self._asked[position]


_Known = tuple[Value, Iterable[Given]]


def _answers(rules: _Rules, known: Sequence[_Known], phrases: Sequence[_Known]) -> Iterator[Answer]:
    """Yield the answers among values that the user gave before. Answers do not overlap."""
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
        if _is_exact(value) and _is_free(value, found):
            found.append(Answer(value))
    yield from found


def _is_exact(value: Value) -> bool:
    return value.is_distinctive and value.shape in ("code", "mail", "link")


def _is_free(value: Value, found: Iterable[Answer]) -> bool:
    """Return whether a value overlaps with none of these answers."""
    return all(value.end <= each.value.start or each.value.end <= value.start for each in found)
