"""A second implementation of LangChain4j's add on plain lists, with all adds that explain a list,
and of the option that leaves interrupted tool calls out.

It is deliberately naive and shares no code with the core: tests compare the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from chatmemory import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)


class Identified(NamedTuple):
    """A message with its identity, since a list may hold equal messages."""

    key: object
    message: ChatMessage


IsOver = Callable[[Sequence[ChatMessage]], bool]
Departures = frozenset[tuple[object, str]]
# A message that left before the list was sent
UNSEEN = Identified("unseen", UserMessage("unseen"))
UNSEEN_RESULT = Identified("unseen", ToolExecutionResultMessage("unseen", "unseen", ""))


class Outcome(NamedTuple):
    """The identities in the list after an add, and of the messages that left, with the reasons."""

    keys: tuple[object, ...]
    departures: Departures


def add(
    old: Sequence[Identified],
    new: Identified,
    over_before: IsOver,
    over_after: IsOver,
    keep_first: bool,
    recovers: bool = False,
) -> Outcome | None:
    """Add as LangChain4j does; None if an equal system message is ignored.

    The limit is checked twice: before the message is appended, and after it. A memory that
    `recovers` first removes interrupted tool calls; if it adds a tool result, it only appends and
    trims.
    """
    window = list(old)
    left: list[tuple[object, str]] = []
    if not (recovers and _is_result(new)):
        left += _clean(window) if recovers else ()
        left += _trim(window, over_before)
    if _is_system(new):
        system = next((said for said in window if _is_system(said)), None)
        if system is not None and system.message == new.message:
            return None
        if system is not None:
            window.remove(system)
            left.append((system.key, "REPLACED"))
    window.insert(0 if keep_first and _is_system(new) else len(window), new)
    left += _trim(window, over_after)
    return Outcome(tuple(said.key for said in window), frozenset(left))


def left_out(said: Sequence[ChatMessage]) -> set[int]:
    """Return the positions of the interrupted tool calls, with their results: from each call, count
    what follows.
    """
    gone: set[int] = set()
    for place, message in enumerate(said):
        if not (isinstance(message, AiMessage) and message.tool_execution_requests):
            continue
        end = place + 1
        while end < len(said) and isinstance(said[end], ToolExecutionResultMessage):
            end += 1
        asked = Counter(each.id for each in message.tool_execution_requests)
        answered = Counter(each.id for each in said[place + 1 : end])
        missing = asked.total() - answered.total()
        tells = all(id and id.strip() for id in asked | answered)
        tells = tells and max((*asked.values(), *answered.values())) == 1
        if missing > 0 or (missing == 0 and tells and asked != answered):
            gone.update(range(place, end))
    return gone


def explanations(
    old: Sequence[Identified], new: Sequence[ChatMessage], policies: Sequence[bool] = (False, True)
) -> set[Outcome]:
    """Return the outcomes of all adds that turn `old` into `new`, with any limits, by memories that
    recover interrupted calls or not.

    The added message is called "new". A message that does not fit is not in the list, but it made
    everything leave that could. If a list only lost its end, it may be that no message was added.
    """
    messages = {said.key: said.message for said in old}
    found = set()
    for arrival in [UNSEEN, UNSEEN_RESULT] if lost_its_end(old, new) else _arrivals(new):
        for outcome in _every_outcome(old, arrival, policies):
            if len(outcome.keys) == len(new) and outcome not in found:
                gives = [messages.get(key, arrival.message) for key in outcome.keys]
                is_listed = arrival.key in outcome.keys
                if gives == list(new) and is_listed == (arrival.key != UNSEEN.key):
                    found.add(_without_unknown(outcome))
    return found


def lost_its_end(old: Sequence[Identified], new: Sequence[ChatMessage]) -> bool:
    return [said.message for said in old[: len(new)]] == list(new)


def _arrivals(new: Sequence[ChatMessage]) -> Iterator[Identified]:
    yield from (UNSEEN, UNSEEN_RESULT)
    yield from (Identified("new", message) for message in new[-1:])
    if new and isinstance(new[0], SystemMessage):
        yield Identified("new", new[0])


def _every_outcome(
    old: Sequence[Identified], arrival: Identified, policies: Sequence[bool]
) -> Iterator[Outcome]:
    rounds = product(range(len(old) + 1), range(len(old) + 2), {False, _is_system(arrival)})
    for (before, after, keep_first), recovers in product(rounds, policies):
        outcome = add(old, arrival, times(before), times(after), keep_first, recovers)
        if outcome is not None:
            yield outcome


def times(rounds: int) -> IsOver:
    """Return a limit that is exceeded the first so many times."""
    left = iter(range(rounds))
    return lambda window: next(left, None) is not None


def _without_unknown(outcome: Outcome) -> Outcome:
    left = frozenset(each for each in outcome.departures if each[0] != UNSEEN.key)
    return outcome._replace(departures=left)


def trimmed(said: Sequence[Identified], is_over: IsOver) -> list[Identified]:
    """Return the window that a read returns."""
    window = list(said)
    for _ in _trim(window, is_over):
        pass
    return window


def _clean(window: list[Identified]) -> Iterator[tuple[object, str]]:
    for place in sorted(left_out([said.message for said in window]), reverse=True):
        yield window.pop(place).key, "INTERRUPTED"


def _trim(window: list[Identified], is_over: IsOver) -> Iterator[tuple[object, str]]:
    while is_over([said.message for said in window]):
        place = 1 if window and _is_system(window[0]) else 0
        if place == len(window):
            return
        victim = window.pop(place)
        yield victim.key, "CAPACITY"
        if victim.message.has_tool_execution_requests:
            while place < len(window) and _is_result(window[place]):
                yield window.pop(place).key, "ORPHANED"


def _is_system(said: Identified) -> bool:
    return isinstance(said.message, SystemMessage)


def _is_result(said: Identified) -> bool:
    return isinstance(said.message, ToolExecutionResultMessage)
