"""A history for replays: the messages of a conversation with their facts, tokens and times."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import zip_longest

from chatmemory.lint import Turn
from chatmemory.messages.estimators import TokenCountEstimator, count_overhead, count_tokens
from chatmemory.messages.json_values import JsonMap
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.recall.again import ReadMessage, read_messages
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.lexicon import Lexicon
from chatmemory.recall.loads import Loads
from chatmemory.recall.needed import NeededAt, needed_at
from chatmemory.windows.window import Entry

# Types whose contents the rules of windows read: system messages to compare, results to stub
_READ_BY_RULES = (MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT)


@dataclass(frozen=True)
class History:
    """The messages of a conversation, in order, for replays.

    Each sequence has one item for each message, or is empty:

    - `entries`: the entry that windows hold. Its key is the position, from 0.
    - `turns`: the message in the form that provider rules check.
    - `read`: the facts of the message, and what it repeats.
    - `numbers`: the seq, which is the message's number in its conversation.
    - `times`: the time in seconds since 1970, or None.
    - `said`: the message itself.

    `lexicon` has all facts of the conversation. `overhead` is the number of tokens of a request
    without messages.
    """

    entries: Sequence[Entry]
    turns: Sequence[Turn]
    read: Sequence[ReadMessage]
    lexicon: Lexicon
    overhead: int
    numbers: Sequence[int]
    times: Sequence[float | None] = ()
    said: Sequence[ChatMessage] = ()  # all messages, which an index needs

    def __len__(self) -> int:
        return len(self.entries)

    def seconds(self, first: int | None, last: int) -> float | None:
        """Return the seconds between the messages at two positions. None if `first` is None, or if
        a time is unknown.
        """
        if first is None or not self.times:
            return None
        start, end = self.times[first], self.times[last]
        return None if start is None or end is None else end - start

    def newest(self, size: int) -> History:
        """Return the history of only the last `size` messages."""
        first = len(self) - size
        if first <= 0:
            return self
        entries = [replace(each, key=n) for n, each in enumerate(self.entries[first:])]
        turns = [each._replace(position=n) for n, each in enumerate(self.turns[first:])]
        return replace(
            self,
            entries=entries,
            turns=turns,
            read=self.read[first:],
            numbers=self.numbers[first:],
            times=self.times[first:],
            said=self.said[first:],
        )

    @cached_property
    def tokens(self) -> list[int]:
        return [entry.tokens for entry in self.entries]

    @cached_property
    def loads(self) -> Loads:
        return Loads(self.entries, self.said)

    @cached_property
    def needed(self) -> Sequence[NeededAt]:
        """For each message, the facts and tool calls from earlier messages that it uses again; see
        `needs`.
        """
        return needed_at(self.read)

    def mentions(self, position: int) -> frozenset[str]:
        """Return the facts that the message at a position mentions."""
        return self.read[position].facts.mentions

    def latest_mentions(self, fact: str, end: int) -> list[int]:
        """Return the positions of at most two messages with a fact, among the first `end` messages.

        They are the latest system message with the fact, and the latest other message with it. A
        system message can be in memory longer than later messages.
        """
        found = (mentions.get(fact, ()) for mentions in self._mentions)
        return [each[n - 1] for each in found if (n := bisect_left(each, end))]

    @cached_property
    def _mentions(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The positions at which each fact is mentioned: in system messages, and in all other
        messages.
        """
        others: defaultdict[str, list[int]] = defaultdict(list)
        systems: defaultdict[str, list[int]] = defaultdict(list)
        for position, entry in enumerate(self.entries):
            by_fact = systems if entry.type is MessageType.SYSTEM else others
            for fact in self.mentions(position):
                by_fact[fact].append(position)
        return others, systems


def history_of(
    messages: Iterable[ChatMessage], estimator: TokenCountEstimator, words: Words = NO_WORDS
) -> History:
    """Return the history of messages for replays, with tokens counted by the estimator."""
    listed = list(messages)
    tokens = [count_tokens(estimator, message) for message in listed]
    overhead = count_overhead(estimator)
    return history_from(listed, tokens, overhead, range(1, len(listed) + 1), words)


def _is_read_by_rules(message: ChatMessage) -> bool:
    """Return whether a rule of windows needs the message itself, and not only its size: system
    messages, tool calls and tool results.
    """
    return message.type in _READ_BY_RULES or message.has_tool_execution_requests


def history_from(
    messages: Sequence[ChatMessage],
    tokens: Sequence[int],
    overhead: int,
    numbers: Sequence[int],
    words: Words = NO_WORDS,
    times: Sequence[float | None] = (),
) -> History:
    """Return the history of messages for replays. `tokens`, `numbers` and `times` have the token
    count, the seq and the time of each message.

    If a message was imported with a time, this time is used, and not the time in `times`.
    """
    entries = [
        Entry(
            message.type,
            message.has_tool_execution_requests,
            tokens[position],
            message if _is_read_by_rules(message) else None,
            key=position,
        )
        for position, message in enumerate(messages)
    ]
    turns = [Turn.of(position, position + 1, message) for position, message in enumerate(messages)]
    lexicon = Lexicon(messages, words)
    read = read_messages(messages, lexicon, words)
    recorded = map(recorded_time, messages)
    known = [each or usual for each, usual in zip_longest(recorded, times)]
    return History(entries, turns, read, lexicon, overhead, numbers, times=known, said=messages)


def recorded_time(message: ChatMessage) -> float | None:
    """Return the time of an imported message, in seconds since 1970. None if the imported file
    gives no time for the message.
    """
    return time_in(getattr(message, "attributes", {}))


def time_in(attributes: JsonMap) -> float | None:
    """Return the time that an import has put into a message's attributes, in seconds since 1970;
    None if there is none.
    """
    for about in attributes.values():  # by the name of the format
        timestamp = about.get("timestamp") if isinstance(about, Mapping) else None
        if isinstance(timestamp, str):
            with suppress(ValueError):
                return datetime.fromisoformat(timestamp).timestamp()
    return None
