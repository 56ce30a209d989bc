"""The facts of a conversation by message: which facts each message states, and which it only
mentions.

A message states the facts that are found in its own text. A message mentions every fact of the
conversation that its text contains, whole or by the identifying part of the fact.
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
    """The facts of a message. Names identify facts in the whole conversation.

    - `own` are the facts that the message itself states: the text as written, by the fact's name.
      Some of these are `dates`, others are `pairs` of a key and a value, such as `membership=gold`.
    - `mentions` are the names of all facts in the message, also of facts that other messages
      stated.
    - `parts` are the mentioned facts of which the message has only a part: the end of a path, or
      the value under another key. While the message is in memory, the fact is held, but the fact is
      not `said` by the message.
    - `speaker` is the type of the message. A message that a program wrote in the user's name has
      the type of a tool result.
    """

    own: Mapping[str, str]
    dates: frozenset[str]
    pairs: frozenset[str]
    mentions: frozenset[str]
    speaker: MessageType
    parts: frozenset[str] = frozenset()

    @property
    def said(self) -> frozenset[str]:
        """The names of the facts that the message contains as a whole."""
        return self.mentions - self.parts


class Lexicon:
    """The facts of consecutive messages; `of` has the facts of each message."""

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
        """The values that users repeat because the assistant asked for a value, or with a reminder,
        such as "as I said".
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
        """Return the facts that texts mention, and those of them that they say."""
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
        """Return the names of this conversation's facts that other texts mention, such as a
        summary.
        """
        read = list(texts)
        dates = (date_names(dates_in(text), self._dates) for text in read)
        answers = map(self.answers.search.found_in, read)
        mentions, _ = self._mentions(read, is_prose=True)
        return mentions.union(*dates, *answers)


def nameable(message: ChatMessage, words: Words = NO_WORDS) -> list[str]:
    """Return all texts of a message that could be facts in some conversation, sorted.

    Stored rows refer to a fact by its index in this list, so that they need not repeat its text.
    """
    found = found_in(message, words)
    values = nameable_values(text_of(message), words) if is_written_by_user(message) else ()
    facts = {*found.terms, *found.codes, *found.dates.values(), *map(str, pairs_of(message))}
    return sorted(facts.union(each.text for each in values))


def speaker_of(message: ChatMessage) -> MessageType:
    is_tools = message.type is MessageType.USER and is_by_program(message)
    return MessageType.TOOL_EXECUTION_RESULT if is_tools else message.type


def _is_prose(message: ChatMessage, speaker: MessageType) -> bool:
    """Return whether the sentences of a message say pairs. The system message tells which values
    there are, of any pair, and the texts of tools are no sentences.
    """
    if isinstance(message, UserMessage):
        return speaker is MessageType.USER and not is_pasted(message)
    return speaker is MessageType.AI
