"""A window as a provider receives it, and which tool results belong to which tool calls.

A `Turn` object is one message, in the form that provider rules check. A `ProviderWindow` has the
`Turn` objects of all its messages, except custom messages.

`Turn.of` makes a `Turn` with only the type and the tool call ids of a message. Rules about contents
find nothing in such a `Turn`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from chatmemory.messages.json_values import JsonMap
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
)
from chatmemory.messages.texts import named

OPENAI, RESPONSES, ANTHROPIC, GEMINI = "openai", "openai_responses", "anthropic", "gemini"
MISTRAL, BEDROCK, DEEPSEEK = "mistral", "bedrock", "deepseek"
# The names of providers, and their names for people.
PROVIDERS = {
    OPENAI: "OpenAI",
    RESPONSES: "OpenAI Responses",
    ANTHROPIC: "Anthropic",
    GEMINI: "Gemini",
    MISTRAL: "Mistral",
    BEDROCK: "Bedrock Converse",
    DEEPSEEK: "DeepSeek",
}
# Anthropic combines turns of the assistant in a row, as recorded exchanges show.
COMBINING = frozenset({ANTHROPIC})
_BESIDE = frozenset({ANTHROPIC, GEMINI, BEDROCK})  # have the system prompt beside the list


# Wide: the one form of a message that every check reads; each window makes thousands.
class Turn(NamedTuple):
    """One message, in the form that provider rules check.

    - `position`: the index of the message in the window. `number` is the number that people see,
      such as 26 for "#26".
    - `calls`: the ids of the message's tool calls. `optional` has the ids of tool calls that run at
      the provider, which need no result from the client.
    - `answers`: for a tool result, the id of the tool call that it answers.
    - `joins`: whether the message and the previous message are parts of one answer.
    - `message`: the message itself; None if only its type and its tool call ids are known.
    - `values`: the message as JSON in the provider's format. `is_own` is True if this JSON came
      from the provider.
    - `continues`: whether the request for this message continued a response or conversation stored
      at OpenAI.
    """

    position: int
    number: int
    type: MessageType
    calls: tuple[str | None, ...] = ()
    answers: str | None = None
    optional: frozenset[str | None] = frozenset()
    joins: bool = False
    message: ChatMessage | None = None
    values: Sequence[JsonMap] = ()
    is_own: bool = False
    continues: bool = False

    @property
    def own(self) -> Sequence[JsonMap]:
        return self.values if self.is_own else ()

    @classmethod
    def of(cls, position: int, number: int, message: ChatMessage) -> Turn:
        """Return a `Turn` with only the type and the tool call ids of a message. Rules about the
        text or the JSON of messages find nothing in such a `Turn`.
        """
        match message:
            case AiMessage(tool_execution_requests=calls):
                ids = tuple((call.id or None) if call else None for call in calls)
                return cls(position, number, message.type, calls=ids)
            case ToolExecutionResultMessage(id=id):
                return cls(position, number, message.type, answers=id or None)
        return cls(position, number, message.type)

    @property
    def name(self) -> str:
        return named(self.number)


NO_CALL = Turn(-1, 0, MessageType.SYSTEM)


class Waiting:
    """An AI message with tool calls (`call`), and the tool results that were found for these calls
    so far.

    - `ids`: the ids of the tool calls without a result.
    - `answered`: a mapping from the id of a tool call to the tool result that `take` accepted for
      this call.
    - `before`: the first message after the tool results, or None at the end of the window.
    """

    def __init__(self, call: Turn = NO_CALL) -> None:
        self.call = call
        self.answered: dict[str | None, Turn] = {}
        self.before: Turn | None = None
        # A turn may have thousands of calls, so look-ups must be fast: the ids in order, the places
        # at which each id waits, and the places that no longer wait.
        self._ids: list[str | None] = []
        self._places: dict[str | None, deque[int]] = {}
        self._settled: set[int] = set()
        self._first = self._open = 0
        self.add(call.calls)

    @property
    def ids(self) -> list[str | None]:
        """The ids of the tool calls without a result, in order."""
        return [id for place, id in enumerate(self._ids) if place not in self._settled]

    @property
    def open(self) -> list[str | None]:
        """The ids of the tool calls that still need a result. Tool calls that run at the provider
        need none.
        """
        return [id for id in self.ids if id not in self.call.optional] if self.is_open else []

    @property
    def is_open(self) -> bool:
        return self._open > 0

    def add(self, ids: Iterable[str | None]) -> None:
        """Add tool calls that wait for a result."""
        for id in ids:
            self._places.setdefault(id, deque()).append(len(self._ids))
            self._ids.append(id)
            self._open += id not in self.call.optional

    def take(self, result: Turn) -> bool:
        """Accept a tool result if it answers a waiting tool call. Returns whether it was accepted.

        A result without an id answers the first waiting tool call that has no id either. If all
        waiting tool calls have ids, the result answers the first of them.
        """
        id = result.answers
        if id is None and None not in self._places:
            id = self._first_id()
        if id not in self._places:
            return False
        self.settle(id)
        self.answered[id] = result
        return True

    def settle(self, id: str | None) -> None:
        """Mark the first waiting tool call with this id as answered. There must be such a tool
        call.
        """
        places = self._places[id]
        self._settled.add(places.popleft())
        if not places:
            del self._places[id]
        self._open -= id not in self.call.optional

    def _first_id(self) -> str | None:
        while self._first in self._settled:
            self._first += 1
        return self._ids[self._first] if self._first < len(self._ids) else None


@dataclass
class Pairing:
    """The tool calls and tool results of a window that do not fit together.

    - `orphans`: tool results without a tool call.
    - `dangling`: AI messages with tool calls that still need a result.
    - `apart`: pairs of a tool result that does not directly follow its tool call, and the message
      with this tool call.
    - `repeated`: pairs of a second result of a tool call, and the first result.
    """

    orphans: list[Turn] = field(default_factory=list)
    dangling: list[Waiting] = field(default_factory=list)
    apart: list[tuple[Turn, Turn]] = field(default_factory=list)
    repeated: list[tuple[Turn, Turn]] = field(default_factory=list)


class ProviderWindow:
    """A window as a provider receives it. Custom messages are left out, because no provider gets
    them.

    `has_left` is True if a message has left the window. `systems` are the system messages.
    `has_system_beside` says whether the provider takes system messages outside its list of
    messages.
    """

    def __init__(
        self,
        turns: Iterable[Turn],
        provider: str,
        has_left: bool = False,
        model: str | None = None,
    ) -> None:
        self.provider = provider
        self.model = model
        self.has_left = has_left
        self.turns = [turn for turn in turns if turn.type is not MessageType.CUSTOM]
        self.systems = [turn for turn in self.turns if turn.type is MessageType.SYSTEM]
        self.has_system_beside = provider in _BESIDE

    @cached_property
    def listed(self) -> list[Turn]:
        """The items of the provider's list of messages. Messages that the provider combines become
        one item: the first message, with the tool calls of all these messages.
        """
        return [_as_one(parts) for parts in self._parts.values()]

    @cached_property
    def _parts(self) -> dict[int, list[Turn]]:
        """The messages that make up each item of the provider's list, by the position of the
        first.
        """
        found: dict[int, list[Turn]] = {}
        last: list[Turn] = []
        for turn in self.turns:
            if last and last[0].type is turn.type and self._is_combined(turn):
                last.append(turn)
            elif not self.has_system_beside or turn.type is not MessageType.SYSTEM:
                last = found[turn.position] = [turn]
        return found

    def _is_combined(self, turn: Turn) -> bool:
        """Return whether the provider combines a message with the previous message, which has the
        same type.
        """
        is_ai = turn.type is MessageType.AI
        return turn.joins or (is_ai and self.provider in COMBINING)

    def parts(self, turn: Turn) -> list[Turn]:
        """Return the messages that make up an item of the provider's list. `turn` is the first of
        these messages.
        """
        return self._parts[turn.position]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {turn.position: place for place, turn in enumerate(self.listed)}

    def place(self, turn: Turn) -> int:
        """Return the index of a message in the provider's list. The provider's errors name the
        message by this index.
        """
        return self._places.get(turn.position, turn.position)

    @cached_property
    def pairing(self) -> Pairing:
        """The tool calls and results that do not fit together.

        OpenAI Responses accepts a result anywhere after its call; other providers require it
        directly after the call.
        """
        found = Pairing(orphans=[*self._orphans_within_answers()])
        unpaired = list(self._unpaired(found))
        answers = {id: each for call in found.dangling for id, each in call.answered.items()}
        waiting: dict[str | None, list[Waiting]] = {}
        for each in found.dangling:
            for id in each.ids:
                waiting.setdefault(id, []).append(each)
        for result in unpaired:
            id = result.answers
            if id is not None and (left := _nearest(waiting.get(id, []), result)):
                left.settle(id)
                answers[id] = result
                if self.provider != RESPONSES or result.position < left.call.position:
                    found.apart.append((result, left.call))
            elif id is not None and (other := answers.get(id)):
                found.repeated.append((result, other))
            else:
                found.orphans.append(result)
        found.dangling = [each for each in found.dangling if each.is_open]
        if any(turn.continues for turn in self.turns):
            found.orphans = []  # the provider has stored their calls
        return found

    def _orphans_within_answers(self) -> Iterator[Turn]:
        """Yield the results of Anthropic's own tools whose call is missing."""
        called: set[str | None] = set()
        for turn in self.turns if self.provider == ANTHROPIC else ():
            if turn.type is MessageType.AI and turn.answers and turn.answers not in called:
                yield turn
            called.update(turn.calls)

    def _unpaired(self, found: Pairing) -> Iterator[Turn]:
        """Yield the tool results that do not directly follow their tool call. Fills
        `found.dangling` with all tool calls.
        """
        waiting = idle = Waiting()
        for turn in self.listed:
            if turn.type is not MessageType.TOOL_EXECUTION_RESULT:
                waiting.before = turn
                waiting = Waiting(turn) if turn.calls else idle
                if turn.calls:
                    found.dangling.append(waiting)
            elif waiting.take(turn):
                continue
            elif turn.answers in waiting.answered:
                found.repeated.append((turn, waiting.answered[turn.answers]))
            else:
                yield turn


def _as_one(parts: Sequence[Turn]) -> Turn:
    """Return the first of several messages, with the tool calls of all of them."""
    if len(parts) == 1:
        return parts[0]
    calls = tuple(id for part in parts for id in part.calls)
    return parts[0]._replace(
        calls=calls, optional=frozenset().union(*(part.optional for part in parts))
    )


def _nearest(waiting: list[Waiting], result: Turn) -> Waiting | None:
    """Remove and return the waiting tool calls nearest before a tool result, or else after it. None
    if none wait.
    """
    if not waiting:
        return None
    before = bisect_left(waiting, result.position, key=lambda each: each.call.position)
    return waiting.pop(max(0, before - 1))
