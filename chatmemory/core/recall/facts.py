"""Facts: terms that nobody can guess, such as order numbers, dates and ids.

A history has the facts of each message, and a use is a fact that a later message took up again.
What is needed is the same under every limit: the recalls, which are the uses of the assistant, and
the incidents of a user or tool that the conversation really had. What comes up again from a user
or tool is an incident under each limit that does not hold it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cache, cached_property
from itertools import zip_longest
from typing import NamedTuple, Protocol, TypeVar

from chatmemory.core.contents import TextContent
from chatmemory.core.estimators import TokenCountEstimator, count_overhead, count_tokens
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.lint import Turn
from chatmemory.core.loads import Loads
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    MessageType,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.window import Entry

SHORTEST, LONGEST = 4, 200
# A run of the characters of facts with a digit in it. Possessive, and tried only where a run
# begins, so that a long text costs no more than its length.
_RUN_WITH_DIGIT = re.compile(
    r"(?<![A-Za-z0-9._@/+\-])[A-Za-z._@/+\-]*+[0-9][A-Za-z0-9._@/+\-]*+", re.ASCII
)
_PUNCTUATION = "._@/+-"
_REDACTED = re.compile(r"\[redacted #[0-9]+\]", re.ASCII)


@dataclass(frozen=True)
class Words:
    """Words that are facts although they may hold no digit: exact terms, and prefixes.

    A term is found where no letter or digit stands beside it. A prefix is found with what follows
    it, such as `INV-` in `INV-new/7`. Raises InvalidValue for an empty word.
    """

    terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for word in (*self.terms, *self.prefixes):
            if not isinstance(word, str) or not word.strip():
                raise InvalidValue(f"a word that is a fact must be a text, but is: {word!r}")


NO_WORDS = Words()


def words_of(terms: Sequence[str], prefixes: Sequence[str]) -> Words:
    """Return the words of a caller. Raises InvalidValue."""
    for given in (terms, prefixes):
        if isinstance(given, str):
            raise InvalidValue(f"words that are facts are a list of texts, not {given!r}")
    return Words(tuple(terms), tuple(prefixes))


@cache
def _pattern(words: Words) -> re.Pattern[str]:
    """Return what finds words in a text; what begins with a prefix is in the group."""
    terms = sorted(words.terms, key=len, reverse=True)
    exact = [rf"{re.escape(term)}(?![^\W_])" for term in terms]
    # Possessive, and looking ahead no farther than facts are long, so that a prefix of punctuation
    # costs a long line of it no more than its length.
    rest = rf"(?=[._@/+\-]{{0,{LONGEST}}}[A-Za-z0-9])[A-Za-z0-9._@/+\-]*+"
    prefixed = [rf"({'|'.join(map(re.escape, words.prefixes))}){rest}"] if words.prefixes else []
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(prefixed + exact)})")


def facts_of(message: ChatMessage, words: Words = NO_WORDS) -> frozenset[str]:
    """Return the facts of a message's texts, tool arguments and tool results.

    A fact is a run of ASCII letters, digits and `._@/+-` that begins and ends with a letter or
    digit, is 4 to 200 characters long and holds a digit; or one of the `words`. Longer runs are
    data, such as base64. The mark of a redaction holds none.
    """
    return frozenset(fact for text in said_texts(message) for fact in _facts_in(text, words))


def _facts_in(text: str, words: Words) -> Iterator[str]:
    if _REDACTED.fullmatch(text):
        return
    for run in _RUN_WITH_DIGIT.findall(text):
        fact = run.strip(_PUNCTUATION)
        if SHORTEST <= len(fact) <= LONGEST:
            yield fact
    if words != NO_WORDS:
        yield from _words_in(text, words)


def _words_in(text: str, words: Words) -> Iterator[str]:
    for found in _pattern(words).finditer(text):
        has_prefix = bool(found.re.groups and found[1])
        fact = found[0].rstrip(_PUNCTUATION) if has_prefix else found[0]
        if not has_prefix or len(fact) <= LONGEST:
            yield fact


def said_texts(message: ChatMessage) -> Iterator[str]:
    """Yield the texts in which facts are looked for: texts, tool arguments and tool results."""
    match message:
        case SystemMessage():
            yield message.text
        case AiMessage():
            yield message.text or ""
            for request in message.tool_execution_requests:
                yield (request and request.arguments) or ""
        case UserMessage() | ToolExecutionResultMessage():
            yield from (each.text for each in message.contents if isinstance(each, TextContent))


class Sayings:
    """Who said each fact last: a user, else a tool."""

    def __init__(self) -> None:
        self._by_user: dict[str, int] = {}
        self._by_tool: dict[str, int] = {}

    def hear(self, number: int, type: MessageType, facts: Iterable[str]) -> None:
        """Hear the facts of the message of this number."""
        if type is MessageType.USER:
            self._by_user.update(dict.fromkeys(facts, number))
        elif type is MessageType.TOOL_EXECUTION_RESULT:
            self._by_tool.update(dict.fromkeys(facts, number))

    def said(self, fact: str) -> int | None:
        """Return the latest message of a user that said a fact, else of a tool."""
        found = self._by_user.get(fact)
        return self._by_tool.get(fact) if found is None else found


# How a fact can come up again in a message: said by a user, fetched by a call, used by a model


class IncidentKind(StrEnum):
    """How a forgotten fact came up again: in a user's message, in the result of a call equal to an
    earlier one, or in the assistant's text or call.
    """

    SAID_AGAIN = "said_again"
    FETCHED_AGAIN = "fetched_again"
    USED = "used"


class Calls:
    """The calls so far, to know those that are made again."""

    def __init__(self) -> None:
        self._made: set[tuple[str, str]] = set()
        self._awaited: dict[str | None, list[bool]] = {}  # by id, whether each was made before

    def kind_of(self, message: ChatMessage) -> IncidentKind | None:
        """Return the kind of an incident in the next message; None if it can be none."""
        match message:
            case UserMessage():
                return IncidentKind.SAID_AGAIN
            case AiMessage():
                self._call(message.tool_execution_requests)
                return IncidentKind.USED
            case ToolExecutionResultMessage():
                awaited = self._awaited.get(message.id)
                return IncidentKind.FETCHED_AGAIN if awaited and awaited.pop(0) else None
        return None

    def _call(self, requests: Iterable[ToolExecutionRequest | None]) -> None:
        awaited: defaultdict[str | None, list[bool]] = defaultdict(list)
        made = [(request, _call_of(request)) for request in requests if request]
        for request, call in made:
            awaited[request.id].append(call in self._made)
        self._made.update(call for _, call in made)
        self._awaited.update(awaited)


def _call_of(request: ToolExecutionRequest) -> tuple[str, str]:
    """Return the name and the arguments of a call, equal for arguments that are equal as JSON."""
    arguments = request.arguments or "{}"
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    return request.name or "", arguments


@dataclass(frozen=True)
class History:
    """What was said, in order. An entry's key is its position, from 0.

    `turns` are the messages as the linter sees them. `overhead` is the fixed cost of a request in
    tokens. `numbers` are the numbers of the messages. `kinds` tell how a fact comes up again in
    each. `incidents` are those of a user or tool that the conversation had: number and fact.
    `times` are when the messages were said, in seconds; None where that is not known.
    """

    entries: Sequence[Entry]
    turns: Sequence[Turn]
    facts: Sequence[frozenset[str]]
    overhead: int
    numbers: Sequence[int]
    kinds: Sequence[IncidentKind | None]
    incidents: frozenset[tuple[int, str]] = frozenset()
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
        """Return the last messages of the history as one of their own."""
        first = len(self) - size
        if first <= 0:
            return self
        entries = [replace(each, key=n) for n, each in enumerate(self.entries[first:])]
        turns = [each._replace(position=n) for n, each in enumerate(self.turns[first:])]
        return replace(
            self,
            entries=entries,
            turns=turns,
            facts=self.facts[first:],
            numbers=self.numbers[first:],
            kinds=self.kinds[first:],
            times=self.times[first:],
        )

    @cached_property
    def tokens(self) -> list[int]:
        return [entry.tokens for entry in self.entries]

    @cached_property
    def loads(self) -> Loads:
        return Loads(self.entries)

    def latest_mentions(self, fact: str, end: int) -> list[int]:
        """Return the positions of the latest message that has a fact among the first `end` ones,
        and of the latest system message, which stays while others leave.
        """
        found = (mentions.get(fact, ()) for mentions in self._mentions)
        return [each[n - 1] for each in found if (n := bisect_left(each, end))]

    @cached_property
    def _mentions(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The positions of each fact, those of system messages apart."""
        others: defaultdict[str, list[int]] = defaultdict(list)
        systems: defaultdict[str, list[int]] = defaultdict(list)
        for position, facts in enumerate(self.facts):
            is_system = self.entries[position].type is MessageType.SYSTEM
            for fact in facts:
                (systems if is_system else others)[fact].append(position)
        return others, systems


def history_of(
    messages: Iterable[ChatMessage], estimator: TokenCountEstimator, words: Words = NO_WORDS
) -> History:
    """Return the history of messages, each counted by the estimator."""
    said = list(messages)
    tokens = [count_tokens(estimator, message) for message in said]
    overhead = count_overhead(estimator)
    return history_from(said, tokens, overhead, range(1, len(said) + 1), words)


def history_from(
    said: Sequence[ChatMessage],
    tokens: Sequence[int],
    overhead: int,
    numbers: Sequence[int],
    words: Words = NO_WORDS,
    times: Sequence[float | None] = (),
) -> History:
    """Return the history of messages whose tokens are known.

    A time that a file gave for a message takes the place of that in `times`.
    """
    entries = [
        Entry(
            message.type,
            message.has_tool_execution_requests,
            tokens[position],
            message if message.type is MessageType.SYSTEM else None,
            key=position,
        )
        for position, message in enumerate(said)
    ]
    turns = [Turn.of(position, position + 1, message) for position, message in enumerate(said)]
    facts = [facts_of(message, words) for message in said]
    kinds = list(map(Calls().kind_of, said))
    recorded = map(recorded_time, said)
    known = [each or usual for each, usual in zip_longest(recorded, times)]
    return History(entries, turns, facts, overhead, numbers, kinds, times=known)


def recorded_time(message: ChatMessage) -> float | None:
    """Return when a message was said, in seconds, if the file of its conversation gave that."""
    for about in getattr(message, "attributes", {}).values():  # by the name of the format
        given = about.get("timestamp") if isinstance(about, Mapping) else None
        if isinstance(given, str):
            with suppress(ValueError):
                return datetime.fromisoformat(given).timestamp()
    return None


class Use(NamedTuple):
    """A fact of a message that an earlier message held; `mention` is the last one that did.

    `until` is the position at which the last mention in the window left, or the history's length.
    `kind` is that of an incident if the fact is forgotten, and `is_told` whether a user or a tool
    has said it, without which it is none.
    """

    position: int
    fact: str
    mention: int
    until: int
    kind: IncidentKind
    is_told: bool

    @property
    def is_held(self) -> bool:
        """Whether a message that mentions the fact was in the window just before the message."""
        return self.until >= self.position


Uses = Callable[[History, Sequence[int]], Iterator[Use]]
_TELLING = frozenset({MessageType.USER, MessageType.TOOL_EXECUTION_RESULT})


def uses(history: History, left: Sequence[int]) -> Iterator[Use]:
    """Yield the facts that messages took up again, each once per message.

    `left` is when each message left in a replay.
    """
    last: dict[str, int] = {}
    until: dict[str, int] = {}
    told: set[str] = set()
    for position, facts in enumerate(history.facts):
        kind = history.kinds[position]
        if kind and facts:
            for fact in sorted(facts & last.keys()):
                yield Use(position, fact, last[fact], until[fact], kind, fact in told)
        for fact in facts:
            last[fact] = position
            until[fact] = max(until.get(fact, -1), left[position])
        if history.entries[position].type in _TELLING:
            told |= facts


def needs(history: History, left: Sequence[int]) -> Iterator[Use]:
    """Yield what is needed, which is the same under every limit."""
    for use in uses(history, left):
        number = history.numbers[use.position]
        if use.kind is IncidentKind.USED or (number, use.fact) in history.incidents:
            yield use


def repeats(history: History, left: Sequence[int]) -> Iterator[Use]:
    """Yield what users said again and calls fetched again: incidents where it is not held."""
    for use in uses(history, left):
        if use.kind is not IncidentKind.USED and use.is_told:
            yield use


# Which facts are shown as examples: ids before names before dates


DATE = re.compile(r"\d{4}[-./]\d{1,2}[-./]\d{1,2}(T.*)?|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}")
_PRICE = re.compile(r"\d+\.\d{1,2}")
_AMOUNT = re.compile(r"\d+([.]\d+)?[A-Za-z]{1,2}")  # 20th, 10am, 15kg
_NAME = re.compile(r"\D+|.+@.+")
SHORTEST_NUMBER = 6  # digits of a number without letters that is an id


class OfFact(Protocol):
    """Anything that is of one fact: a use or an incident."""

    @property
    def fact(self) -> str: ...


F = TypeVar("F", bound=OfFact)


def _example_rank(fact: str) -> int | None:
    """Return 0 for an id, 1 for a name, 2 for a date; None for what is no example.

    Parts of something, prices and short numbers count as facts, and are no examples.
    """
    if DATE.fullmatch(fact):
        return 2
    if _NAME.fullmatch(fact):
        return 1
    if _PRICE.fullmatch(fact) or _AMOUNT.fullmatch(fact):
        return None
    has_letter = any(map(str.isalpha, fact))
    is_long = sum(map(str.isdigit, fact)) >= SHORTEST_NUMBER
    return 0 if has_letter or is_long else None


def examples_first(found: Iterable[F]) -> Iterator[F]:
    """Yield what is an example, in order: ids before names before dates."""
    ranked = [(rank, each) for each in found if (rank := _example_rank(each.fact)) is not None]
    yield from (each for _, each in sorted(ranked, key=lambda pair: pair[0]))
