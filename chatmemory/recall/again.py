"""Facts and calls that come up again in the messages of a conversation, whatever memory held.

A fact is an incident only where it was forgotten, which a replay or the ledger shows.
"""

from __future__ import annotations

import json
import re
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
from chatmemory.recall.facts import NO_WORDS, Words, is_pasted, json_of, texts_with_facts
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.lexicon import Lexicon, MessageFacts

_WORD = re.compile(r"[a-z]+")
# Tools whose names have one of these words are repeatable: they write, think, or look at a state.
REPEATABLE = frozenset(
    _WORD.findall(
        "write edit update create delete remove set add insert send post put patch book cancel "
        "move save apply modify replace run exec execute bash shell command terminal test build "
        "think reason plan todo todos note calculate wait sleep poll status state time date now "
        "screenshot snapshot diff log output transfer task agent"
    )
)
# Words that make a sentence a request even without a question mark
REQUESTS = (
    "please share",
    "please give",
    "please send",
    "please tell",
    "please enter",
    "provide",
    "confirm",
    "i'll need",
    "i will need",
    "i need",
    "could you",
    "can you",
    "may i",
    "let me know",
    "tell me",
)
# Words of a request to repeat something, whatever its name
ONCE_MORE = ("again", "once more", "one more time", "repeat", "resend")
_ONCE_MORE = re.compile(rf"\b(?:{'|'.join(ONCE_MORE)})\b")
# Words by which users say that they repeat themselves
REMINDERS = (
    "already",
    "again",
    "as i said",
    "like i said",
    "as i mentioned",
    "i told you",
    "i just told",
    "i just said",
    "i just gave",
    "on file",
)
_FEW = 4  # mentions in which the name of a fact is looked for, first and last ones
_BEFORE = 60  # characters before a fact in which its name is looked for
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_NO_NOUNS = frozenset(
    _WORD.findall(
        "a an the my your our his her their its this that these those i you he she it we they is "
        "are was were be been has have had do does did can could will would may might shall should "
        "for from to with of on in at by as and or but if not no yes sure ok okay please thanks "
        "thank here use using used want need like just also then so"
    )
)


class Recurrence(NamedTuple):
    """The facts or the call in a message that make an incident of one kind if memory had forgotten
    them.

    `facts` are names. In a user's message, `requested` are the facts that the assistant asked for
    by name, and `forced` are these together with facts that the user claims to have given before.
    For a call, `call` is the name under which its results are mentioned, and `is_same` tells
    whether the result equals the earlier one.
    """

    kind: IncidentKind
    facts: tuple[str, ...]
    forced: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    call: str = ""
    is_same: bool | None = None


class ReadMessage(NamedTuple):
    """A message with its facts, and the facts and calls that come up again in it, by kind."""

    facts: MessageFacts
    again: tuple[Recurrence, ...] = ()


def read_messages(
    messages: Sequence[ChatMessage], lexicon: Lexicon, words: Words = NO_WORDS
) -> list[ReadMessage]:
    """Read the messages of a conversation in order."""
    reader = _Reader(messages, lexicon, words)
    return [reader.read(position) for position in range(len(messages))]


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

    def last_mention(self, fact: str) -> int | None:
        """Return the latest message of a user that said a fact, else of a tool."""
        found = self._by_user.get(fact)
        return self._by_tool.get(fact) if found is None else found

    def by_user(self, fact: str) -> bool:
        return fact in self._by_user


class _Reader:
    """Reads the messages of a conversation one after the other."""

    def __init__(self, messages: Sequence[ChatMessage], lexicon: Lexicon, words: Words) -> None:
        self._messages, self._lexicon, self._words = messages, lexicon, words
        self._sayings, self._calls = Sayings(), Calls(words.repeatable)
        self._mentions: defaultdict[str, list[int]] = defaultdict(list)
        self._names: dict[tuple[int, str], frozenset[frozenset[str]]] = {}
        self._before: MessageFacts | None = None  # of the assistant's message directly before

    def read(self, position: int) -> ReadMessage:
        message, facts = self._messages[position], self._lexicon.of[position]
        again: list[Recurrence] = []
        match message:
            case UserMessage() if facts.speaker is MessageType.USER and not is_pasted(message):
                again += self._from_user(position, facts)
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

    def _known(self, facts: MessageFacts) -> tuple[str, ...]:
        """Return the facts of a message that a user or a tool has said before."""
        return tuple(fact for fact in facts.own if self._sayings.last_mention(fact) is not None)

    def _hear(self, position: int, facts: MessageFacts) -> None:
        self._sayings.hear(position, facts.speaker, facts.mentions)
        for fact in facts.mentions:
            self._mentions[fact].append(position)
        is_answer = isinstance(self._messages[position], AiMessage)
        self._before = facts if is_answer else None

    def _from_user(self, position: int, facts: MessageFacts) -> Iterator[Recurrence]:
        offered = self._before.mentions if self._before else frozenset()
        new = facts.dates | offered
        known = [fact for fact in self._known(facts) if fact not in new]
        repeated = [fact for fact in known if self._sayings.by_user(fact)]
        supplied = tuple(fact for fact in known if not self._sayings.by_user(fact))
        if repeated:
            requests = list(_requests(self._messages[position - 1])) if self._before else []
            requested = frozenset(self._requested(requests, repeated))
            text = text_of(self._messages[position]).lower()
            reminds = any(each in text for each in (*REMINDERS, *self._words.reminders))
            forced = frozenset(repeated) if reminds else requested
            yield Recurrence(IncidentKind.USER_REPEATED, tuple(repeated), forced, requested)
        if supplied:
            yield Recurrence(IncidentKind.USER_SUPPLIED, supplied)

    def _requested(self, requests: Sequence[str], facts: Sequence[str]) -> Iterable[str]:
        """Return the facts whose kind the requests of the assistant name; all of them if it asks
        for something once more.
        """
        if any(map(_ONCE_MORE.search, requests)):
            return facts
        questions = [frozenset(map(_stem, _WORD.findall(each))) for each in requests]
        return [fact for fact in facts if questions and self._are_for(questions, fact)]

    def _are_for(self, questions: Sequence[frozenset[str]], fact: str) -> bool:
        """Return whether the words of a question name the kind of a fact."""
        mentions = self._mentions[fact]
        return any(
            name and name.issubset(words)
            for each in {*mentions[:_FEW], *mentions[-_FEW:]}
            for name in self._names_at(each, fact)
            for words in questions
        )

    def _names_at(self, position: int, fact: str) -> frozenset[frozenset[str]]:
        """Return the words by which a message names a fact. They are looked for once."""
        if (position, fact) not in self._names:
            texts = texts_with_facts(self._messages[position])
            names = frozenset(name for text in texts for name in names_of(fact, text))
            self._names[position, fact] = names
        return self._names[position, fact]


def _requests(message: ChatMessage) -> Iterator[str]:
    """Yield each sentence of a message that asks for something, in small letters."""
    text = message.text if isinstance(message, AiMessage) else None
    for sentence in _SENTENCE_END.split(text or ""):
        lowered = sentence.lower().replace("’", "'")
        if "?" in sentence or any(each in lowered for each in REQUESTS):
            yield lowered


def names_of(fact: str, text: str) -> Iterator[frozenset[str]]:
    """Yield the words by which a text names a fact: the key of its JSON, or the noun before it."""
    value = json_of(text)
    if value is not None:
        yield from _keys_of(fact, value)
        return
    at = text.find(fact)
    while at >= 0:
        before = _WORD.findall(text[max(0, at - _BEFORE) : at].lower().rpartition("\n")[2])
        nouns = _nouns(before)
        if nouns:
            yield frozenset(map(_stem, nouns))
        at = text.find(fact, at + len(fact))


def _nouns(before: Sequence[str]) -> list[str]:
    """Return the noun at the end of some words, with one before it, such as `user id`."""
    words = list(before)
    while words and words[-1] in _NO_NOUNS:
        words.pop()
    return [word for word in words[-2:] if word not in _NO_NOUNS]


def _keys_of(fact: str, value: object) -> Iterator[frozenset[str]]:
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


def _words_of_key(key: str) -> frozenset[str]:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
    return frozenset(map(_stem, _WORD.findall(parted)))


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


# Calls


class CallOfResult(NamedTuple):
    """The call that a result answers: its name, which equal calls share and which is empty for a
    repeatable call; whether the result is an error; and whether an equal call had a result before,
    and the same one.
    """

    name: str = ""
    is_error: bool = False
    was_answered: bool = False
    is_same: bool | None = None


class Calls:
    """The calls so far, to recognize repeated ones."""

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
        """Return the name and arguments of a call as one text, the same for arguments that are
        equal as JSON; empty for a repeatable call.
        """
        name = request.name or ""
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
        if name in self._repeatable or not REPEATABLE.isdisjoint(map(str.lower, words)):
            return ""
        arguments = request.arguments or "{}"
        with suppress(ValueError, RecursionError):
            arguments = json.dumps(json.loads(arguments), sort_keys=True)
        return f"{name}({arguments})"


def is_error(message: ToolExecutionResultMessage) -> bool:
    """Return whether a result is an error: by its flag, by how it begins, or by its JSON."""
    text = text_of(message).lstrip()
    if message.is_error or text.startswith(("Error", "Traceback")):
        return True
    value = json_of(text)
    return isinstance(value, dict) and bool(value.get("error"))
