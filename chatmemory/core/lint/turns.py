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
from chatmemory.core.texts import named

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
    """The calls of a turn that have no result yet, and the results of the others by id.

    `before` is the turn that came while they waited; None is the window's end.
    """

    def __init__(self, call: Turn = NO_CALL) -> None:
        self.call = call
        self.ids = list(call.calls)
        self.answered: dict[str | None, Turn] = {}
        self.before: Turn | None = None

    @property
    def open(self) -> list[str | None]:
        """The calls that must be answered."""
        return [id for id in self.ids if id not in self.call.optional]

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


@dataclass
class Pairing:
    """What is wrong between calls and results.

    `dangling` are calls that wait for a result. `apart` are results with their call, which does not
    stand directly before them, and `repeated` are results of a call that another one answered, with
    that one.
    """

    orphans: list[Turn] = field(default_factory=list)
    dangling: list[Waiting] = field(default_factory=list)
    apart: list[tuple[Turn, Turn]] = field(default_factory=list)
    repeated: list[tuple[Turn, Turn]] = field(default_factory=list)


class Sent:
    """A window as one provider gets it. Custom messages are no turns of it. `has_left` tells that
    something left the window before.
    """

    def __init__(self, turns: Iterable[Turn], provider: str, has_left: bool = False) -> None:
        self.provider = provider
        self.has_left = has_left
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
        answers = {id: each for call in found.dangling for id, each in call.answered.items()}
        waiting: dict[str | None, list[Waiting]] = {}
        for each in found.dangling:
            for id in each.ids:
                waiting.setdefault(id, []).append(each)
        for result in unpaired:
            id = result.answers
            if id is not None and (left := _nearest(waiting.get(id, []), result)):
                left.ids.remove(id)
                answers[id] = result
                if self.provider != RESPONSES or result.position < left.call.position:
                    found.apart.append((result, left.call))
            elif id is not None and (other := answers.get(id)):
                found.repeated.append((result, other))
            else:
                found.orphans.append(result)
        found.dangling = [each for each in found.dangling if each.open]
        return found

    def _orphans_within_answers(self) -> Iterator[Turn]:
        """Yield the results of Anthropic's own tools whose call is not there."""
        called: set[str | None] = set()
        for turn in self.turns if self.provider == ANTHROPIC else ():
            if turn.type is MessageType.AI and turn.answers and turn.answers not in called:
                yield turn
            called.update(turn.calls)

    def _unpaired(self, found: Pairing) -> Iterator[Turn]:
        """Yield the results that do not stand directly behind their call; all calls dangle yet."""
        found.dangling = [waiting := Waiting()]
        for turn in self.listed:
            if turn.type is not MessageType.TOOL_EXECUTION_RESULT:
                waiting.before = turn
                found.dangling.append(waiting := Waiting(turn))
            elif waiting.take(turn):
                continue
            elif turn.answers in waiting.answered:
                found.repeated.append((turn, waiting.answered[turn.answers]))
            else:
                yield turn


def _nearest(waiting: list[Waiting], result: Turn) -> Waiting | None:
    """Take the call that a result is nearest to, of those before it if there are any."""
    before = [each for each in waiting if each.call.position < result.position]
    if not waiting:
        return None
    nearest = before[-1] if before else waiting[0]
    waiting.remove(nearest)
    return nearest
