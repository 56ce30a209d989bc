"""The repairs of a window, in the order in which they are applied. A window without faults stays
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from chatmemory.lint.checks import call_after_model, first_not_user, first_user
from chatmemory.lint.rules import Finding
from chatmemory.lint.turns import BEDROCK, GEMINI, ProviderWindow
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    SystemMessage,
    ToolExecutionResultMessage,
    text_of,
)
from chatmemory.messages.texts import named

PLACEHOLDER = "[no result: the tool did not answer]"
_NAMES = {
    MessageType.SYSTEM: "System message",
    MessageType.AI: "AI message",
    MessageType.TOOL_EXECUTION_RESULT: "Tool result",
    MessageType.CUSTOM: "Custom message",
}


@dataclass(frozen=True)
class RepairChange:
    """A change that a repair made, or would make. `repair` is the name of the repair.

    `position` is the index of the changed message in the window before the repair. For an added
    placeholder, `position` is the index of the message with the tool call. `what` describes the
    change, such as "Tool result #5: moved directly after its tool call #3."
    """

    repair: str
    position: int
    what: str


@dataclass(frozen=True)
class Repaired:
    """The result of a repair: the messages of the repaired window, the changes that were `done`,
    and the findings that remain (`left`).

    `sources` has, for each message, its index in the window before the repair; None for an added
    placeholder. The `positions` of the findings are indices in the repaired window.
    """

    messages: Sequence[ChatMessage]
    sources: Sequence[int | None]
    done: Sequence[RepairChange] = ()
    left: Sequence[Finding] = ()


@dataclass
class BenchMessage:
    """A message of a window while the window is repaired.

    - `number`: the number that people see, such as 26 for "#26". A placeholder has the number of
      the message with its tool call.
    - `source`: the index of the message in the window before the repair, or None for an added
      placeholder.
    """

    message: ChatMessage
    number: int
    source: int | None


@dataclass
class Bench:
    """A window while it is repaired: its messages (`places`), and the changes so far (`done`)."""

    places: list[BenchMessage]
    done: list[RepairChange] = field(default_factory=list)

    @property
    def messages(self) -> list[ChatMessage]:
        return [place.message for place in self.places]

    @property
    def numbers(self) -> list[int]:
        return [place.number for place in self.places]

    def record(self, repair: str, place: BenchMessage, what: str) -> None:
        assert place.source is not None, "placeholders are not repaired"
        is_call = isinstance(place.message, AiMessage) and place.message.tool_execution_requests
        name = "Tool call" if is_call else _NAMES[place.message.type]
        message = f"{name} {named(place.number)}"
        self.done.append(RepairChange(repair, place.source, f"{message}: {what}."))


Repair = Callable[[ProviderWindow, Bench], None]


def system_first(sent: ProviderWindow, bench: Bench) -> None:
    """Move system messages to the beginning. Of system messages with the same text, keep only the
    first.

    Does nothing for providers that take system messages inside their list of messages.
    """
    if not sent.has_system_beside:
        return
    first: list[BenchMessage] = []
    texts: set[str] = set()
    for at, turn in enumerate(sent.systems):
        place = bench.places[turn.position]
        text = text_of(place.message)
        if text in texts:
            bench.record(
                "drop_duplicate",
                place,
                "removed, because an earlier system message has the same text",
            )
            continue
        texts.add(text)
        first.append(place)
        if turn.position != at:
            bench.record("system_first", place, "moved to the beginning")
    others = [each for each in bench.places if not isinstance(each.message, SystemMessage)]
    bench.places = [*first, *others]


def drop_results(sent: ProviderWindow, bench: Bench) -> None:
    """Leave out tool results without a call, and further results of a call that has a result."""
    dropped: set[int] = set()
    for turn in sent.pairing.orphans:
        dropped.add(turn.position)
        place = bench.places[turn.position]
        bench.record("drop_result", place, "removed, because its tool call is not in memory")
    for turn, other in sent.pairing.repeated:
        dropped.add(turn.position)
        what = f"removed, because {other.name} already answers the same tool call"
        bench.record("drop_duplicate", bench.places[turn.position], what)
    bench.places = [each for at, each in enumerate(bench.places) if at not in dropped]


def begin_with_user(sent: ProviderWindow, bench: Bench) -> None:
    """Leave out the messages before the first user message if the provider rejects them. System
    messages are not left out.
    """
    first = first_user(sent)
    check = {GEMINI: call_after_model, BEDROCK: first_not_user}.get(sent.provider)
    if first is None or check is None or not any(fault.is_repairable for fault in check(sent)):
        return
    dropped = {turn.position for turn in sent.turns if turn.position < first} - {
        turn.position for turn in sent.systems
    }
    for position in sorted(dropped):
        what = "removed, because memory must start at a user message"
        bench.record("begin_with_user", bench.places[position], what)
    bench.places = [each for at, each in enumerate(bench.places) if at not in dropped]


def move_results(sent: ProviderWindow, bench: Bench) -> None:
    """Move tool results directly after their call."""
    moved: dict[int, list[BenchMessage]] = {}
    for result, call in sent.pairing.apart:
        place = bench.places[result.position]
        moved.setdefault(sent.parts(call)[-1].position, []).append(place)
        bench.record("move_result", place, f"moved directly after its tool call {call.name}")
    _put_behind(bench, moved)


def add_placeholders(sent: ProviderWindow, bench: Bench) -> None:
    """Add a placeholder as the result of each tool call that still needs a result. The text of the
    placeholder says that the result is missing.

    The placeholder comes after the message with the tool call, and after the tool results that
    already follow this message.
    """
    added: dict[int, list[BenchMessage]] = {}
    for left in sent.pairing.dangling:
        parts = sent.parts(left.call)
        if len(left.open) < len(left.call.calls):
            calls = [(parts[-1], id) for id in left.open]
        else:
            calls = [(part, id) for part in parts for id in part.calls]
        tools = _tools_of(bench.places[each.position].message for each in parts)
        for part, id in calls:
            result = ToolExecutionResultMessage(id, tools.get(id), PLACEHOLDER)
            added.setdefault(part.position, []).append(BenchMessage(result, part.number, None))
            place = bench.places[part.position]
            bench.record("add_placeholder", place, "a placeholder result was added")
    _put_behind(bench, added)


# Each repair works on the window that the one before left.
REPAIRS: tuple[Repair, ...] = (
    system_first,
    drop_results,
    move_results,
    begin_with_user,
    add_placeholders,
)


def _tools_of(messages: Iterable[ChatMessage]) -> dict[str | None, str | None]:
    """Return the names of the tools that some messages call, by the ids of the calls."""
    answers = (each for each in messages if isinstance(each, AiMessage))
    calls = [call for each in answers for call in each.tool_execution_requests if call]
    return {call.id or None: call.name for call in reversed(calls)}


def _put_behind(bench: Bench, results: dict[int, list[BenchMessage]]) -> None:
    """Put `results` behind the messages at these indices, and behind the tool results that already
    follow.
    """
    moving = {id(place) for places in results.values() for place in places}
    found: list[BenchMessage] = []
    waiting: list[BenchMessage] = []
    for at, place in enumerate(bench.places):
        if id(place) in moving:
            continue
        if waiting and place.message.type is not MessageType.TOOL_EXECUTION_RESULT:
            found += waiting
            waiting = []
        found.append(place)
        waiting += results.get(at, [])
    bench.places = [*found, *waiting]
