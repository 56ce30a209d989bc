"""A window as a provider gets it, and which result answers which call.

Rules ask a `Sent` window. Its turns are made of messages, or of the columns of stays, which tell
the types and the ids of calls: rules about contents then find nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
)

OPENAI, RESPONSES, ANTHROPIC, GEMINI = "openai", "openai_responses", "anthropic", "gemini"
# The providers by name, and how people call them.
PROVIDERS = {
    OPENAI: "OpenAI",
    RESPONSES: "OpenAI Responses",
    ANTHROPIC: "Anthropic",
    GEMINI: "Gemini",
}
# Anthropic combines turns of the assistant in a row, as recorded exchanges show.
COMBINING = frozenset({ANTHROPIC})
_BESIDE = frozenset({ANTHROPIC, GEMINI})  # have the system prompt beside the list

Json = Mapping[str, Any]


class Turn(NamedTuple):
    """One message as far as rules need it.

    `position` is its index in the window, and `number` is what people call it: #12. `calls` are the
    ids of its tool calls and `answers` the id of the call that a result answers; None is no id.
    Calls of tools that run at the provider are `optional`: nobody has to answer them, and their
    results are turns of the AI. A turn that `joins` was said in one with the turn before it. `own`
    are the values of the provider's format, where a message keeps what only that can say.
    """

    position: int
    number: int
    type: MessageType
    calls: tuple[str | None, ...] = ()
    answers: str | None = None
    optional: frozenset[str | None] = frozenset()
    joins: bool = False
    message: ChatMessage | None = None
    own: Sequence[Json] = ()

    @classmethod
    def of(cls, position: int, number: int, message: ChatMessage) -> Turn:
        """Return the turn of a message without its contents."""
        return cls(position, number, message.type, ids_of(message), answered_by(message))


def ids_of(message: ChatMessage) -> tuple[str | None, ...]:
    """Return the ids of a message's tool calls, None where there is none."""
    if not isinstance(message, AiMessage):
        return ()
    return tuple((call.id or None) if call else None for call in message.tool_execution_requests)


def answered_by(message: ChatMessage) -> str | None:
    """Return the id of the call that a tool result answers, if it tells one."""
    return message.id or None if isinstance(message, ToolExecutionResultMessage) else None


@dataclass(eq=False)
class Open:
    """Calls of a turn that had no result when a turn `before` came; None is the window's end."""

    call: Turn
    ids: list[str | None]
    before: Turn | None


@dataclass
class Pairing:
    """What is wrong between calls and results.

    `apart` are results with their call, which does not stand directly before them, and `repeated`
    are results of a call that another one answered, with that one.
    """

    orphans: list[Turn] = field(default_factory=list)
    dangling: list[Open] = field(default_factory=list)
    apart: list[tuple[Turn, Turn]] = field(default_factory=list)
    repeated: list[tuple[Turn, Turn]] = field(default_factory=list)


class Waiting:
    """The calls of a turn that have no result yet, and the results of the others by id."""

    def __init__(self, call: Turn | None = None) -> None:
        self.call = call
        self.ids = list(call.calls) if call else []
        self.answered: dict[str | None, Turn] = {}

    @property
    def open(self) -> list[str | None]:
        """The calls that must be answered."""
        optional = self.call.optional if self.call else ()
        return [id for id in self.ids if id not in optional]

    def take(self, result: Turn) -> bool:
        """Take a result of one of the calls. One without an id answers the first call that has
        none, else the first that waits.
        """
        id = result.answers
        if id is None and self.ids and None not in self.ids:
            id = self.ids[0]
        if id not in self.ids:
            return False
        self.ids.remove(id)
        self.answered[id] = result
        return True


class Sent:
    """A window as one provider gets it. Custom messages are no turns of it."""

    def __init__(self, turns: Iterable[Turn], provider: str) -> None:
        self.provider = provider
        self.turns = [turn for turn in turns if turn.type is not MessageType.CUSTOM]
        self.systems = [turn for turn in self.turns if turn.type is MessageType.SYSTEM]
        self.has_system_beside = provider in _BESIDE

    @cached_property
    def listed(self) -> list[Turn]:
        """The turns that are in the provider's list of messages, each as a whole."""
        found: list[Turn] = []
        for turn in self.turns:
            last = found[-1] if found else None
            if last and last.type is turn.type and self._are_one(turn):
                calls, optional = last.calls + turn.calls, last.optional | turn.optional
                found[-1] = last._replace(calls=calls, optional=optional)
            elif not self.has_system_beside or turn.type is not MessageType.SYSTEM:
                found.append(turn)
        return found

    def _are_one(self, turn: Turn) -> bool:
        """Whether a turn is one with a turn of its type before it."""
        is_ai = turn.type is MessageType.AI
        return turn.joins or (is_ai and self.provider in COMBINING)

    def parts(self, turn: Turn) -> list[Turn]:
        """Return the turns that are one with the first of them."""
        first = bisect_left(self.turns, turn.position, key=attrgetter("position"))
        found = [self.turns[first]]
        for each in islice(self.turns, first + 1, None):
            if each.type is turn.type and self._are_one(each):
                found.append(each)
            elif each.type is not MessageType.SYSTEM or not self.has_system_beside:
                break
        return found

    @cached_property
    def _places(self) -> dict[int, int]:
        return {turn.position: place for place, turn in enumerate(self.listed)}

    def place(self, turn: Turn) -> int:
        """Return the index that the provider's error would have for a turn."""
        return self._places.get(turn.position, turn.position)

    @cached_property
    def pairing(self) -> Pairing:
        """What is wrong between calls and results. OpenAI Responses finds a result wherever it
        stands behind its call; the others want it directly there.
        """
        found = Pairing(orphans=[*self._orphans_within_answers()])
        unpaired = list(self._unpaired(found))
        waiting: dict[str | None, list[Open]] = {}
        for each in found.dangling:
            for id in each.ids:
                waiting.setdefault(id, []).append(each)
        for result in unpaired:
            id = result.answers
            if id is not None and (left := _nearest(waiting.get(id, []), result)):
                left.ids.remove(id)
                self._answers[id] = result
                if self.provider != RESPONSES or result.position < left.call.position:
                    found.apart.append((result, left.call))
            elif id is not None and (other := self._answers.get(id)):
                found.repeated.append((result, other))
            else:
                found.orphans.append(result)
        found.dangling = [each for each in map(_required, found.dangling) if each.ids]
        return found

    def _orphans_within_answers(self) -> Iterator[Turn]:
        """Yield the results of Anthropic's own tools whose call is not there."""
        called: set[str | None] = set()
        for turn in self.turns if self.provider == ANTHROPIC else ():
            if turn.type is MessageType.AI and turn.answers and turn.answers not in called:
                yield turn
            called.update(turn.calls)

    def _unpaired(self, found: Pairing) -> Iterator[Turn]:
        """Yield the results that do not stand directly behind their call."""
        self._answers: dict[str | None, Turn] = {}
        waiting = Waiting()
        for turn in self.listed:
            if turn.type is MessageType.TOOL_EXECUTION_RESULT:
                if waiting.take(turn):
                    self._answers |= waiting.answered
                elif turn.answers in waiting.answered:
                    found.repeated.append((turn, waiting.answered[turn.answers]))
                else:
                    yield turn
                continue
            self._leave_open(waiting, turn, found)
            waiting = Waiting(turn)
        self._leave_open(waiting, None, found)

    def _leave_open(self, waiting: Waiting, before: Turn | None, found: Pairing) -> None:
        if waiting.call and waiting.ids:
            found.dangling.append(Open(waiting.call, [*waiting.ids], before))


def _nearest(waiting: list[Open], result: Turn) -> Open | None:
    """Take the call that a result is nearest to, of those before it if there are any."""
    before = [each for each in waiting if each.call.position < result.position]
    if not waiting:
        return None
    nearest = before[-1] if before else waiting[0]
    waiting.remove(nearest)
    return nearest


def _required(left: Open) -> Open:
    """Return open calls without those that nobody has to answer."""
    ids = [id for id in left.ids if id not in left.call.optional]
    return Open(left.call, ids, left.before)
