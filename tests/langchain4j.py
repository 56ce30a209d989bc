"""A second implementation of LangChain4j's add on plain lists, with all adds that explain a list.

It is deliberately naive and shares no code with the core: tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from chatmemory import ChatMessage, SystemMessage, ToolExecutionResultMessage, UserMessage


class Identified(NamedTuple):
    """A message with its identity, since a list may hold equal messages."""

    key: object
    message: ChatMessage


IsOver = Callable[[Sequence[ChatMessage]], bool]
Departures = frozenset[tuple[object, str]]
UNSEEN = Identified("unseen", UserMessage("a message that left before the list was sent"))


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
) -> Outcome | None:
    """Add as LangChain4j does; None if an equal system message is ignored.

    The limit is checked twice: before the message is appended, and after it.
    """
    window = list(old)
    left = list(_trim(window, over_before))
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


def explanations(old: Sequence[Identified], new: Sequence[ChatMessage]) -> set[Outcome]:
    """Return the outcomes of all adds that turn `old` into `new`, with any limits.

    The added message is called "new". A message that does not fit is not in the list, but it made
    everything leave that could. If a list only lost its end, it may be that no message was added.
    """
    messages = {said.key: said.message for said in old}
    found = set()
    for arrival in [UNSEEN] if lost_its_end(old, new) else _arrivals(new):
        for outcome in _every_outcome(old, arrival):
            if len(outcome.keys) == len(new) and outcome not in found:
                gives = [messages.get(key, arrival.message) for key in outcome.keys]
                if gives == list(new) and (arrival.key in outcome.keys) == (arrival is not UNSEEN):
                    found.add(_without_unknown(outcome))
    return found


def lost_its_end(old: Sequence[Identified], new: Sequence[ChatMessage]) -> bool:
    return [said.message for said in old[: len(new)]] == list(new)


def _arrivals(new: Sequence[ChatMessage]) -> Iterator[Identified]:
    yield UNSEEN
    yield from (Identified("new", message) for message in new[-1:])
    if new and isinstance(new[0], SystemMessage):
        yield Identified("new", new[0])


def _every_outcome(old: Sequence[Identified], arrival: Identified) -> Iterator[Outcome]:
    for before in range(len(old) + 1):
        for after in range(len(old) + 2):
            for keep_first in {False, _is_system(arrival)}:
                outcome = add(old, arrival, times(before), times(after), keep_first)
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
