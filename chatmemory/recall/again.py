"""Finds facts and tool calls that a conversation repeats.

A repetition is an incident if the fact, or the earlier result of the tool call, had left memory. A
replay or the ledger decides this, not this module.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.patterns import declared_pattern
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted, json_of, texts_with_facts
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.lexicon import Lexicon, MessageFacts
from chatmemory.recall.phrases import all_nouns, own_keys, own_kinds
from chatmemory.recall.values import signs_of

_WORD = declared_pattern(r"[a-z]+")
_BETWEEN_WORDS = declared_pattern(r"(?<=[a-z])(?=[A-Z])")
_WORD_OF_NAME = declared_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FEW = 4  # mentions in which the name of a fact is looked for, first and last ones
_BEFORE = 40  # signs before a fact in which its name is looked for
# Tools whose names have one of these words are repeatable: they write, think, or look at a state.
REPEATABLE = frozenset(
    _WORD.findall(
        "write edit update create delete remove set add insert send post put patch book cancel "
        "move save apply modify replace run exec execute bash shell command terminal test build "
        "think reason plan todo todos note calculate wait sleep poll status state time date now "
        "screenshot snapshot diff log output transfer task agent"
    )
)


class Recurrence(NamedTuple):
    """The facts, or the tool call, that a message repeats. The message is an incident of this
    `kind` if a repeated fact, or the earlier result of the call, had left memory.

    - `facts`: the names of the repeated facts. For a repeated call, the facts in its result that a
      user or a tool gave earlier.
    - `requested`: the names in `facts` for which the assistant had asked.
    - `forced`: the names in `requested`, and the names of facts that the user gives with a reminder
      such as "as I said".
    - `call`: the repeated tool call, with its arguments; "" if facts are repeated.
    - `is_same`: whether the repeated tool call had the same result; None if facts are repeated.
    """

    kind: IncidentKind
    facts: tuple[str, ...]
    forced: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    call: str = ""
    is_same: bool | None = None


class ReadMessage(NamedTuple):
    """The facts of a message, and what the message repeats. `again` has at most one `Recurrence`
    for each kind of incident. It is empty if nothing is repeated.
    """

    facts: MessageFacts
    again: tuple[Recurrence, ...] = ()


def read_messages(
    messages: Sequence[ChatMessage], lexicon: Lexicon, words: Words = NO_WORDS
) -> list[ReadMessage]:
    """Return the facts of each message of a conversation, and what the message repeats."""
    reader = _Reader(messages, lexicon, words)
    return [reader.read(position) for position in range(len(messages))]


class Sayings:
    """Remembers, for each fact, the last user message with the fact, and the last tool result with
    it.
    """

    def __init__(self) -> None:
        self._by_user: dict[str, int] = {}
        self._by_tool: dict[str, int] = {}

    def hear(self, number: int, type: MessageType, facts: Iterable[str]) -> None:
        """Remember that the message with this number has these facts. Only user messages and tool
        results count.
        """
        if type is MessageType.USER:
            self._by_user.update(dict.fromkeys(facts, number))
        elif type is MessageType.TOOL_EXECUTION_RESULT:
            self._by_tool.update(dict.fromkeys(facts, number))

    def last_mention(self, fact: str) -> int | None:
        """Return the number of the last user message with a fact. Without such a message, return
        the number of the last tool result with the fact. None if there is no such result.
        """
        found = self._by_user.get(fact)
        return self._by_tool.get(fact) if found is None else found

    def by_user(self, fact: str) -> bool:
        return fact in self._by_user


class _Reader:
    """Reads the messages of a conversation one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], lexicon: Lexicon, words: Words) -> None:
        self._messages, self._lexicon = messages, lexicon
        self._sayings, self._calls = Sayings(), Calls(words.repeatable)
        self._mentions: defaultdict[str, list[int]] = defaultdict(list)
        self._names: dict[tuple[int, str], frozenset[str]] = {}
        self._before: MessageFacts | None = None  # of the assistant's message directly before

    def read(self, position: int) -> ReadMessage:
        message, facts = self._messages[position], self._with_answers(position)
        again: list[Recurrence] = []
        match message:
            case UserMessage() if facts.speaker is MessageType.USER and not is_pasted(message):
                again += self._from_user(position, self._lexicon.of[position])
            case AiMessage():
                self._calls.call(message)
                known = self._known(facts)
                again += [Recurrence(IncidentKind.USED_UNSEEN, known)] if known else []
            case ToolExecutionResultMessage():
                call = self._calls.answer(message)
                if call.name and not call.is_error:
                    facts = facts._replace(mentions=facts.mentions | {call.name})
                if call.was_answered:
                    kind, known = IncidentKind.CALL_REPEATED, self._known(facts)
                    again.append(Recurrence(kind, known, call=call.name, is_same=call.is_same))
        self._hear(position, facts)
        return ReadMessage(facts, tuple(again))

    def _with_answers(self, position: int) -> MessageFacts:
        """Return the facts of a message, including the answers that it gives or mentions."""
        facts, answers = self._lexicon.of[position], self._lexicon.answers
        if not answers.search:
            return facts
        texts = texts_with_facts(self._messages[position])
        found = frozenset[str]().union(*map(answers.search.found_in, texts))
        given = {each.value.name: each.value.text for each in answers.at.get(position, ())}
        own = {**facts.own, **given} if given else facts.own
        return facts._replace(own=own, mentions=facts.mentions | found | given.keys())

    def _known(self, facts: MessageFacts) -> tuple[str, ...]:
        """Return which facts of a message a user or a tool has given before."""
        return tuple(fact for fact in facts.own if self._sayings.last_mention(fact) is not None)

    def _hear(self, position: int, facts: MessageFacts) -> None:
        self._sayings.hear(position, facts.speaker, facts.said)
        for fact in facts.mentions:
            self._mentions[fact].append(position)
        is_answer = isinstance(self._messages[position], AiMessage)
        self._before = facts if is_answer else None

    def _from_user(self, position: int, facts: MessageFacts) -> Iterator[Recurrence]:
        """Yield what a user message repeats: facts that the user gave before, and facts that only
        tools had given.

        An answer counts as a whole. Facts that are parts of an answer are left out.
        """
        answers = self._lexicon.answers.at.get(position, ())
        parts = [signs_of(each.value.text) for each in answers if each.is_forced]
        others = [signs_of(each.value.text) for each in answers if not each.is_forced]
        offered = self._before.mentions if self._before else frozenset()
        new = facts.dates | offered
        known = [
            fact
            for fact in self._known(facts)
            if fact not in new and not _is_part(signs_of(fact), parts, others)
        ]
        repeated = [fact for fact in known if self._sayings.by_user(fact)]
        supplied = tuple(fact for fact in known if self._is_supplied(fact))
        whole = {signs_of(fact) for fact in facts.own}
        longer = [signs_of(fact) for fact in repeated]
        values = [
            each
            for each in answers
            if each.is_forced
            or not (
                signs_of(each.value.text) in whole or _is_part(signs_of(each.value.text), longer)
            )
        ]
        names = [each.value.name for each in values]
        if repeated or names:
            forced = frozenset(each.value.name for each in values if each.is_forced)
            requested = frozenset(each.value.name for each in values if each.is_requested)
            again = (*names, *repeated)
            yield Recurrence(IncidentKind.USER_REPEATED, again, forced, requested)
        if supplied:
            yield Recurrence(IncidentKind.USER_SUPPLIED, supplied)

    def _is_supplied(self, fact: str) -> bool:
        """Return whether only tools had given a fact before. False for facts that users know by
        heart, such as their phone number.
        """
        return not self._sayings.by_user(fact) and not self._is_known_by_heart(fact)

    def _is_known_by_heart(self, fact: str) -> bool:
        mentions = self._mentions[fact]
        names = (self._names_at(each, fact) for each in {*mentions[:_FEW], *mentions[-_FEW:]})
        return any(is_own_name(name) for found in names for name in found)

    def _names_at(self, position: int, fact: str) -> frozenset[str]:
        """Return what a message calls a fact: the keys in JSON, or the words before the fact."""
        if (position, fact) not in self._names:
            texts = texts_with_facts(self._messages[position])
            names = frozenset(name for text in texts for name in names_of(fact, text))
            self._names[position, fact] = names
        return self._names[position, fact]


def _is_part(signs: str, containing: Iterable[str], longer: Iterable[str] = ()) -> bool:
    """Return whether a text of `containing` contains `signs`, or a text of `longer` contains
    `signs` and more.
    """
    return any(signs in each for each in containing) or any(
        signs in each and signs != each for each in longer
    )


def is_own_name(name: str) -> bool:
    """Return whether a lowercase name, such as "telephone", names a fact that users know about
    themselves.
    """
    if not own_keys().isdisjoint(name.split()):
        return True
    return any(not own_kinds().isdisjoint(noun.kinds) for noun in all_nouns().found_in(name))


def names_of(fact: str, text: str) -> Iterator[str]:
    """Yield the words by which a text names a fact, in lowercase, for each place with the fact.

    - In JSON, they are the key of the fact: `{"orderNumber": "A-1182"}` gives "order number". If
      the fact is itself a key, they are the key of the surrounding object.
    - In other texts, they are up to 40 characters before the fact on its line, such as "my order
      number is ".
    """
    value = json_of(text)
    if value is not None:
        yield from _keys_of(fact, value)
        return
    at = text.find(fact)
    while at >= 0:
        yield text[max(0, at - _BEFORE) : at].lower().rpartition("\n")[2]
        at = text.find(fact, at + len(fact))


def _keys_of(fact: str, value: object) -> Iterator[str]:
    waiting = [("", value)]
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.items()
            if fact in each:
                yield _words_of_key(key)
        elif isinstance(each, list):
            waiting += ((key, one) for one in each)
        elif str(each) == fact:
            yield _words_of_key(key)


def _words_of_key(key: str) -> str:
    return _BETWEEN_WORDS.sub(" ", key).lower()


# Calls


class CallOfResult(NamedTuple):
    """The tool call that a tool result answers.

    - `name`: the tool's name with the arguments. Equal calls have equal names. "" if the call is
      unknown, or if its tool may be called repeatedly. All other fields then have their defaults.
    - `is_error`: whether the result is an error.
    - `was_answered`: whether an equal call already had a result without an error.
    - `is_same`: whether this result equals the latest earlier result of an equal call. Earlier
      results with an error do not count. False if `was_answered` is False; None if `name` is empty.
    """

    name: str = ""
    is_error: bool = False
    was_answered: bool = False
    is_same: bool | None = None


class Calls:
    """The tool calls so far, by which repeated calls are recognized. Two kinds of tools may be
    called repeatedly, and their calls do not count:

    - tools named in `repeatable`
    - tools with a word of REPEATABLE in their names, such as `get_time`
    """

    def __init__(self, repeatable: Sequence[str] = ()) -> None:
        self._repeatable = frozenset(repeatable)
        self._awaited: dict[str | None, list[str]] = {}
        self._results: dict[str, str] = {}  # the last result of each call, but for errors

    def call(self, message: AiMessage) -> None:
        awaited: defaultdict[str | None, list[str]] = defaultdict(list)
        for request in filter(None, message.tool_execution_requests):
            awaited[request.id].append(self._name(request))
        self._awaited.update(awaited)

    def answer(self, message: ToolExecutionResultMessage) -> CallOfResult:
        awaited = self._awaited.get(message.id)
        name = awaited.pop(0) if awaited else ""
        if not name:
            return CallOfResult()
        result, before = text_of(message), self._results.get(name)
        has_failed = is_error(message)
        if not has_failed:
            self._results[name] = result
        return CallOfResult(name, has_failed, before is not None, before == result)

    def _name(self, request: ToolExecutionRequest) -> str:
        """Return a tool call as one text: the name and the arguments. Arguments that are equal as
        JSON give the same text. "" for a tool that may be called repeatedly.
        """
        name = request.name or ""
        words = _WORD_OF_NAME.findall(name)
        if name in self._repeatable or not REPEATABLE.isdisjoint(map(str.lower, words)):
            return ""
        arguments = request.arguments or "{}"
        with suppress(ValueError, RecursionError):
            arguments = json.dumps(json.loads(arguments), sort_keys=True)
        return f"{name}({arguments})"


def is_error(message: ToolExecutionResultMessage) -> bool:
    """Return whether a tool result reports an error: by its flag, by its first word, or by a key
    "error" in its JSON.
    """
    text = text_of(message).lstrip()
    if message.is_error or text.startswith(("Error", "Traceback")):
        return True
    value = json_of(text)
    return isinstance(value, dict) and bool(value.get("error"))
