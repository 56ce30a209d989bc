"""A history: the messages of a conversation with their facts, and the uses of these facts.

The needed uses are the same under every limit: the recalls, which are uses by the assistant, and
the incidents of users and tools that the conversation really had. A repetition by a user or a
repeated call is an incident under every limit that does not hold its facts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

from chatmemory.lint import Turn
from chatmemory.messages.estimators import TokenCountEstimator, count_overhead, count_tokens
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.recall.again import ReadMessage, Recurrence, read_messages
from chatmemory.recall.facts import NO_WORDS, Words, example_rank
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.lexicon import Lexicon
from chatmemory.recall.loads import Loads
from chatmemory.windows.window import Entry

# Types whose contents the rules of windows read: system messages to compare, results to stub
_READ_BY_RULES = (MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT)
REPEATS = frozenset({IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED})


@dataclass(frozen=True)
class History:
    """The messages of a conversation, in order. An entry's key is its position, from 0.

    `turns` are the messages in the linter's form, and `read` the messages with their facts.
    `overhead` is the fixed cost of a request in tokens. `numbers` are the numbers of the messages.
    `incidents` are the incidents of users and tools that the conversation had, as message number
    and kind. `times` are the times of the messages in seconds; None where unknown.
    """

    entries: Sequence[Entry]
    turns: Sequence[Turn]
    read: Sequence[ReadMessage]
    lexicon: Lexicon
    overhead: int
    numbers: Sequence[int]
    incidents: frozenset[tuple[int, IncidentKind]] = frozenset()
    times: Sequence[float | None] = ()

    def __len__(self) -> int:
        return len(self.entries)

    def seconds(self, first: int | None, last: int) -> float | None:
        """Return the time between two messages; None if it is not known."""
        if first is None or not self.times:
            return None
        start, end = self.times[first], self.times[last]
        return None if start is None or end is None else end - start

    def newest(self, size: int) -> History:
        """Return the last `size` messages as a history of their own."""
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
        )

    @cached_property
    def tokens(self) -> list[int]:
        return [entry.tokens for entry in self.entries]

    @cached_property
    def loads(self) -> Loads:
        return Loads(self.entries)

    def mentions(self, position: int) -> frozenset[str]:
        """Return the facts that the message at a position mentions."""
        return self.read[position].facts.mentions

    def latest_mentions(self, fact: str, end: int) -> list[int]:
        """Return where the first `end` messages last mention a fact: the position of the latest
        message, and of the latest system message, which stays while others leave.
        """
        found = (mentions.get(fact, ()) for mentions in self._mentions)
        return [each[n - 1] for each in found if (n := bisect_left(each, end))]

    @cached_property
    def _mentions(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The positions at which each fact is mentioned: of system messages, and of all others."""
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
    """Return the history of messages, each counted by the estimator."""
    listed = list(messages)
    tokens = [count_tokens(estimator, message) for message in listed]
    overhead = count_overhead(estimator)
    return history_from(listed, tokens, overhead, range(1, len(listed) + 1), words)


def _is_read_by_rules(message: ChatMessage) -> bool:
    """Return whether a rule needs the message itself: equal system messages, and the ids of calls
    and results.
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
    """Return the history of messages whose tokens are known.

    A time recorded in the conversation's file overrides the message's time in `times`.
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
    return History(entries, turns, read, lexicon, overhead, numbers, times=known)


def recorded_time(message: ChatMessage) -> float | None:
    """Return the time of a message in seconds, if the file of its conversation had it."""
    return time_in(getattr(message, "attributes", {}))


def time_in(attributes: Mapping[str, Any]) -> float | None:
    """Return the time that a file recorded, from the attributes that formats add to a message."""
    for about in attributes.values():  # by the name of the format
        timestamp = about.get("timestamp") if isinstance(about, Mapping) else None
        if isinstance(timestamp, str):
            with suppress(ValueError):
                return datetime.fromisoformat(timestamp).timestamp()
    return None


class Use(NamedTuple):
    """A use of facts, or of a call, at the position of a message: an incident if it was forgotten.

    `parts` are the names of its facts, or of its call, each with the last message that mentions it.
    `fact` is the part whose mention leaves first, as written, `mention` its last mention, and
    `until` the position at which its last mention in the window left, or the history's length.
    """

    position: int
    kind: IncidentKind
    fact: str
    mention: int
    until: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_held(self) -> bool:
        """Whether all of it was in the window just before the message."""
        return self.until >= self.position

    def depends_on(self, known: Container[str]) -> int | None:
        """Return, of all mentions that must be in memory, the one that leaves first; None if all
        facts are `known` anyway.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


ChooseUses = Callable[[History, Iterable[Use]], Iterator[Use]]


def uses(history: History, left: Sequence[int]) -> Iterator[Use]:
    """Yield the facts that the assistant used again, each once a message, and the facts and calls
    that users and tools repeated, once for each message and kind. Pairs such as `membership=gold`
    count only for incidents: a recall concerns a term, a code or a date.

    `left` has, for each message, the position at which its text left in a replay (see
    `Departures.of_texts`).
    """
    last: dict[str, int] = {}
    until: dict[str, int] = {}
    for position, read in enumerate(history.read):
        own = read.facts.own
        if history.entries[position].type is MessageType.AI:
            for name in sorted((own.keys() - read.facts.pairs) & last.keys()):
                part = ((name, last[name]),)
                kind = IncidentKind.USED_UNSEEN
                yield Use(position, kind, own[name], last[name], until[name], part)
        for again in read.again:
            if again.kind is not IncidentKind.USED_UNSEEN:
                names = [name for name in _names(again) if name in last]
                if not names:
                    continue
                first = min(names, key=lambda name: (until[name], last[name]))
                parts = tuple((name, last[name]) for name in names)
                fact = _shown(again, own) if again.call else own[first]
                yield Use(position, again.kind, fact, last[first], until[first], parts)
        for name in read.facts.mentions:
            last[name] = position
            until[name] = max(until.get(name, -1), left[position])


def _shown(again: Recurrence, own: Mapping[str, str]) -> str:
    """Return the best known fact in a call's result, or the call if the result has none."""
    best = min(again.facts, key=example_rank, default=again.call)
    return own.get(best, best)


def _names(again: Recurrence) -> tuple[str, ...]:
    return (again.call,) if again.call else again.facts


def needs(history: History, found: Iterable[Use]) -> Iterator[Use]:
    """Yield the needed ones of the uses of a history, which are the same under every limit."""
    for use in found:
        number = history.numbers[use.position]
        if use.kind is IncidentKind.USED_UNSEEN or (number, use.kind) in history.incidents:
            yield use


def repeats(_: History, found: Iterable[Use]) -> Iterator[Use]:
    """Yield the repetitions by users and the repeated calls, which are incidents where memory does
    not hold their facts.
    """
    for use in found:
        if use.kind in REPEATS:
            yield use
