"""Replay of a history from an empty window under one constant policy: when each message left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from chatmemory.core.keeping import evicts_oldest_first
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, option_fields
from chatmemory.core.recall.histories import History
from chatmemory.core.transitions import fold
from chatmemory.core.window import Window

# The options that change nothing of what leaves where there is one system message, the first.
_NEUTRAL = {"always_keep_system_message_first"}


def departures(history: History, policy: Policy | None) -> Sequence[int]:
    """Return, for each message, the position of the message at whose arrival it left.

    That is its own position where it found no room or was ignored, and the length of the history
    where it stayed to the end. None as a policy keeps everything.
    """
    if policy is None:
        return [len(history)] * len(history)
    if has_bounds(history, policy):
        return _oldest_first(history, policy)
    left = [len(history)] * len(history)
    for position, change in enumerate(fold(Window(), history.entries, policy)):
        if change.ignored:
            left[position] = position
        for eviction in change.evictions:
            left[eviction.entry.key] = position  # type: ignore[call-overload]
    return left


def has_bounds(history: History, policy: Policy) -> bool:
    """Return whether the loads of parts of the history tell what leaves, without a replay.

    That is so for policies without options that evict the oldest message first, where no other
    system message than the first one is said.
    """
    given = {
        option.name
        for option in option_fields(type(policy)).values()
        if not option.metadata.get("derived") and getattr(policy, option.name) != option.default
    }
    return history.is_simple and evicts_oldest_first(policy) and given <= _NEUTRAL


class Loads:
    """The loads of windows that hold the first system message and a part of the history."""

    def __init__(self, history: History, policy: Policy) -> None:
        first = history.first_system
        is_counted = [entry.type is not MessageType.SYSTEM for entry in history.entries]
        tokens = [
            entry.tokens if counts else 0
            for entry, counts in zip(history.entries, is_counted, strict=True)
        ]
        self._counts = list(accumulate(map(int, is_counted), initial=int(first is not None)))
        self._tokens = list(accumulate(tokens, initial=first.tokens if first else 0))
        self._base = Window((first,) if first else ()).totals
        self._load = policy.load

    def between(self, first: int, last: int) -> int:
        """Return the load of the window that holds the messages from `first` to `last`."""
        count, tokens = self._base
        count += self._counts[last + 1] - self._counts[first]
        return self._load(count, tokens + self._tokens[last + 1] - self._tokens[first])


def _oldest_first(history: History, policy: Policy) -> list[int]:
    """Return the departures by moving the start of the window, which is a part of the history."""
    entries, size = history.entries, len(history)
    load, limit = Loads(history, policy).between, policy.limit
    left = [size] * size
    start = 0
    for position, arrival in enumerate(entries):
        if arrival.type is MessageType.SYSTEM:
            left[position] = position if position else size
            continue
        while start <= position and load(start, position) > limit:
            start = _leave(history, start, position, left)
    return left


def _leave(history: History, oldest: int, arrival: int, left: list[int]) -> int:
    """Let the oldest message leave, with the results of its call; return the new start."""
    entries = history.entries
    swept = oldest if entries[oldest].has_calls else None
    while True:
        if entries[oldest].type is not MessageType.SYSTEM:
            left[oldest] = arrival
        oldest += 1
        if oldest > arrival:
            return oldest
        is_swept = swept is not None and history.calls[oldest] == swept
        if not is_swept and entries[oldest].type is not MessageType.SYSTEM:
            return oldest
