"""The facts of each message of a conversation.

A message states the facts that are found in its own text, such as `build7/settings.py`.

A message mentions all facts that it states. It also mentions a fact of another message if it has
only a part that identifies the fact, such as `settings.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from chatmemory.messages.message import ChatMessage, MessageType, UserMessage, text_of
from chatmemory.recall.answers import Answers, is_written_by_user, nameable_values
from chatmemory.recall.dates import Dates, date_names, dates_in
from chatmemory.recall.facts import (
    NO_WORDS,
    NamedFacts,
    Words,
    found_in,
    is_pasted,
    texts_with_facts,
)
from chatmemory.recall.pairs import Pairs, pairs_of
from chatmemory.recall.sessions import is_by_program
from chatmemory.recall.term_search import Terms, identifying_part


class MessageFacts(NamedTuple):
    """The names of the facts of a message. A fact has the same name in the whole conversation.

    - `own`: the facts that the message itself states. Each name maps to the text in the message.
    - `dates`: the names in `own` that stand for dates.
    - `pairs`: the names in `own` that stand for pairs of a key and its value, such as
      `membership=gold`.
    - `mentions`: all facts in the message, including facts that only other messages state.
    - `parts`: the facts in `mentions` of which the message has only a part, such as the end of a
      path. `said` is `mentions` without `parts`.
    - `speaker`: the type of the message. For a user message that a program wrote, it is the type of
      a tool result.
    """

    own: Mapping[str, str]
    dates: frozenset[str]
    pairs: frozenset[str]
    mentions: frozenset[str]
    speaker: MessageType
    parts: frozenset[str] = frozenset()

    @property
    def said(self) -> frozenset[str]:
        """The names of the facts in `mentions` that the message has in full, and not only
        in part.
        """
        return self.mentions - self.parts


class Lexicon:
    """The facts of a conversation. `of` has the facts of each message, in order."""

    def __init__(self, messages: Sequence[ChatMessage], words: Words = NO_WORDS) -> None:
        self._messages, self._words = messages, words
        found = [found_in(each, words) for each in messages]
        self._codes = frozenset().union(*(each.named for each in found))
        terms = [each.terms | (each.codes & self._codes) for each in found]
        everything = frozenset().union(*terms)
        self._terms, self._dates = Terms(everything), Dates()
        self._pairs = Pairs(messages, everything.union(*(each.dates.values() for each in found)))
        self.of = [
            self._facts(message, position, terms[position], found[position])
            for position, message in enumerate(messages)
        ]

    @cached_property
    def answers(self) -> Answers:
        """The values that users give again because the assistant asked, or with a reminder such as
        "as I said".
        """
        return Answers(self._messages, self._words)

    def _facts(
        self, message: ChatMessage, position: int, terms: frozenset[str], found: NamedFacts
    ) -> MessageFacts:
        dates = date_names(found.dates, self._dates)
        pairs = frozenset(map(str, self._pairs.used_at(position)))
        own = {**{each: each for each in (*sorted(terms), *sorted(pairs))}, **dates}
        speaker = speaker_of(message)
        texts = list(texts_with_facts(message))
        mentions, said = self._mentions(texts, is_prose=_is_prose(message, speaker))
        names = frozenset(own)
        parts = mentions - said - names
        return MessageFacts(own, frozenset(dates), pairs, mentions | names, speaker, parts)

    def _mentions(
        self, texts: Iterable[str], *, is_prose: bool
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the facts that the texts mention, and those of them that the texts have as a
        whole.
        """
        found: set[str] = set()
        said: set[str] = set()
        for text in texts:
            terms = self._terms.found_in(text)
            # A term that is its own identifying part is found where the text says it.
            said.update(term for term in terms if identifying_part(term) == term or term in text)
            found |= terms
            if pairs := self._pairs.mentioned_in(text):
                found.update(map(str, pairs))
                said.update(map(str, self._pairs.said_in(text, is_prose)))
        return frozenset(found | said), frozenset(said)

    def mentioned_in(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the facts of the conversation that other texts, such as a summary, mention."""
        read = list(texts)
        dates = (date_names(dates_in(text), self._dates) for text in read)
        answers = map(self.answers.search.found_in, read)
        mentions, _ = self._mentions(read, is_prose=True)
        return mentions.union(*dates, *answers)


def nameable(message: ChatMessage, words: Words = NO_WORDS) -> list[str]:
    """Return everything in a message that could be a fact in some conversation, sorted.

    A stored row refers to a fact by its index in this list, and so need not repeat its text.
    """
    found = found_in(message, words)
    values = nameable_values(text_of(message), words) if is_written_by_user(message) else ()
    facts = {*found.terms, *found.codes, *found.dates.values(), *map(str, pairs_of(message))}
    return sorted(facts.union(each.text for each in values))


def speaker_of(message: ChatMessage) -> MessageType:
    is_tools = message.type is MessageType.USER and is_by_program(message)
    return MessageType.TOOL_EXECUTION_RESULT if is_tools else message.type


def _is_prose(message: ChatMessage, speaker: MessageType) -> bool:
    """Return whether a user typed a message, or the assistant wrote it. Only the sentences of such
    a message can state pairs.
    """
    if isinstance(message, UserMessage):
        return speaker is MessageType.USER and not is_pasted(message)
    return speaker is MessageType.AI
