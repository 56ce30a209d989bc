"""Answers: what users say again because the assistant asked for it, or because they say that they
said it before.

An answer repeats a value if an earlier message of the user gave it for the kind that the assistant
asks for. Whether memory had lost it is not known here: a replay or the ledger shows that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, text_of
from chatmemory.recall.asked import Given, answers_openly, asks_for
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted
from chatmemory.recall.phrases import Question, Request, question_in, requests_in
from chatmemory.recall.reminded import Reminded
from chatmemory.recall.sessions import is_by_program
from chatmemory.recall.user_texts import Said, UserText, place_in
from chatmemory.recall.values import Search, Value, codes_in, longest_first, words_in

_NO_KINDS: frozenset[str] = frozenset()


class Answer(NamedTuple):
    """A value that a user repeats.

    `is_requested` means that the assistant asked for it, and `is_reminded` that the user reminds
    the assistant of having given it. Without either, nobody forced the repetition.
    """

    value: Value
    is_requested: bool = False
    is_reminded: bool = False

    @property
    def is_forced(self) -> bool:
        return self.is_requested or self.is_reminded


class Answers:
    """The answers in consecutive messages, by position."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words = NO_WORDS) -> None:
        reader = _Reader(messages, words)
        self.at: Mapping[int, Sequence[Answer]] = {
            position: found
            for position, message in enumerate(messages)
            if is_written_by_user(message) and (found := reader.read(position))
        }
        self.search = Search(each.value for found in self.at.values() for each in found)


def is_written_by_user(message: ChatMessage) -> bool:
    """Return whether a user wrote a message, and did not paste it."""
    is_user = isinstance(message, UserMessage) and not is_by_program(message)
    return is_user and isinstance(message, UserMessage) and not is_pasted(message)


def nameable_values(text: str, words: Words = NO_WORDS) -> list[Value]:
    """Return all values of a user's text, and also the values of the text without its reminders."""
    read = UserText(text, words.reminders)
    rest = words_in(read.plain) if read.reminders else []
    return [*codes_in(text), *words_in(text), *rest, *Reminded(read).phrases()]


_Rule = Callable[[Value, Sequence[Given]], Answer]


class _Reader:
    """Reads the messages that the user wrote, one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words) -> None:
        self._messages, self._words = messages, words
        self._said = Said()
        self._requests: dict[int, list[Request]] = {}

    def read(self, position: int) -> list[Answer]:
        text = UserText(text_of(self._messages[position]), self._words.reminders)
        codes = codes_in(text.text)
        reminded = Reminded(text)
        question = self._question_before(position)
        values = [*codes, *words_in(text.plain)] if reminded or question else codes
        values = [*longest_first(values), *longest_first(reminded.phrases())]
        known = [(value, at) for value in values if (at := self._said.holding(value))]
        found = [*self._answers(position, text, known, reminded, question)] if known else []
        self._said.add(position, text, codes)
        return found

    def requests_before(self, position: int) -> list[Request]:
        """Return the requests of the assistant's message directly before a position."""
        if position not in self._requests:
            text = self._text_before(position)
            self._requests[position] = requests_in(text, self._words.requests) if text else []
        return self._requests[position]

    def _question_before(self, position: int) -> Question | None:
        text = self._text_before(position)
        return question_in(text, self.requests_before(position)) if text else None

    def _text_before(self, position: int) -> str:
        """Return the text of the assistant's message directly before a position, or ""."""
        before = self._messages[position - 1] if position else None
        return before.text or "" if isinstance(before, AiMessage) else ""

    def _answers(
        self,
        position: int,
        text: UserText,
        known: Sequence[tuple[Value, Sequence[int]]],
        reminded: Reminded,
        question: Question | None,
    ) -> Iterator[Answer]:
        offered = Search(value for value, _ in known).found_in(self._text_before(position))
        known = [(value, at) for value, at in known if value.name not in offered]
        requests = self.requests_before(position)
        found: list[Answer] = []
        rules: tuple[_Rule, ...] = (
            lambda value, given: Answer(
                value,
                any(asks_for(each, value, text, given) for each in requests),
                reminded.binds(value, given, is_answer=bool(requests)),
            ),
            lambda value, given: Answer(
                value,
                question is not None and answers_openly(question, value, text, given),
                reminded.tells(value),
            ),
        )
        for rule in rules:
            for value, at in known:
                if _is_free(value, found):
                    answer = rule(value, [*self._given(value, at)])
                    found += [answer] if answer.is_forced else []
        for value, _ in known:
            is_exact = value.shape in ("code", "mail", "link") and value.is_distinctive
            if is_exact and _is_free(value, found):
                found.append(Answer(value))
        yield from found

    def _given(self, value: Value, at: Iterable[int]) -> Iterator[Given]:
        """Yield the earlier texts with a value, at these positions."""
        for position in at:
            text = self._said.texts[position]
            asked = _NO_KINDS.union(*(each.kinds for each in self.requests_before(position)))
            yield Given(text, place_in(text, value), asked)


def _is_free(value: Value, found: Iterable[Answer]) -> bool:
    """Return whether no answer has any of these signs."""
    return all(value.end <= each.value.start or each.value.end <= value.start for each in found)
