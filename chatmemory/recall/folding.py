"""Folding: messages are added one by one to a window, as live adds do; every replay uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from chatmemory.exceptions import NoRoomBesidePins, OversizedMessage
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.index import Left, given_way, indexed, is_for_index
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Change, Transition, admit
from chatmemory.windows.window import Entry, Window


class Added(NamedTuple):
    """The transition of an add, the old tool results that were cleared before it, each with its
    stub, and the change of the index after it, if the policy has one and there was a change.
    """

    change: Transition
    cleared: tuple[Eviction, ...] = ()
    renewed: Transition | None = None


def fold(
    window: Window, arrivals: Iterable[Entry], policy: Policy, said: Sequence[ChatMessage] = ()
) -> Iterator[Added]:
    """Add entries to a window one by one; yield the transition of each add.

    A message that the policy rejects changes nothing. If the policy clears old tool results, the
    entries of results must have a message: the result, or a stub of it, which is as good. An index
    needs all messages, which are `said`; without them there is none. Raises NoRoomBesidePins, and
    if the policy clears results or has an index, UnknownEstimator.
    """
    clear = _clearing_by(policy) if policy.whole_results else None
    index = _Indexing(policy, said) if policy.indexed_terms and said else None
    for position, arrival in enumerate(arrivals):
        cleared: tuple[Eviction, ...] = ()
        before = None
        if index:
            index.hear(position, arrival)
        if clear and (clearing := clear(window, arrival)).evictions:
            before, cleared = (list(window), window.totals), clearing.evictions
            clearing.apply_to(window)
        try:
            change = index.admit(window, arrival) if index else admit(window, arrival, policy)
        except OversizedMessage:
            if before:
                window.refill(before[0])
                window.totals = before[1]
            yield Added(Transition(Change.ADD, window.totals, window.totals, policy, policy))
            continue
        change.apply_to(window)
        yield Added(change, cleared, index.renew(window, change, cleared) if index else None)


def _clearing_by(policy: Policy) -> Callable[[Window, Entry], Transition]:
    count = partial(count_tokens, estimator_for(policy.estimator))
    return lambda window, arrival: clear_for(window, arrival, policy, count)


class _Indexing:
    """The index of a replay. Entries of a replay have no messages, which it reads from `said`."""

    def __init__(self, policy: Policy, said: Sequence[ChatMessage]) -> None:
        self._policy, self._said = policy, said
        self._positions: dict[Entry, int] = {}
        self._count = partial(count_tokens, estimator_for(policy.estimator))
        self._gave_way: Transition | None = None

    def hear(self, position: int, arrival: Entry) -> None:
        self._positions[arrival] = position
        self._gave_way = None

    def admit(self, window: Window, arrival: Entry) -> Transition:
        """Admit a message. If it has no room beside the index, the index leaves first."""
        try:
            return admit(window, arrival, self._policy)
        except NoRoomBesidePins:
            self._gave_way = given_way(window, self._policy)
            self._gave_way.apply_to(window)
            return admit(window, arrival, self._policy)

    def renew(
        self, window: Window, change: Transition, cleared: Iterable[Eviction]
    ) -> Transition | None:
        """Renew the index after an add, and return its change, or None."""
        if change.ignored:
            return self._gave_way
        gone = [*cleared, *filter(is_for_index, change.evictions)]
        left = [self._left(each.entry) for each in gone]
        if not left:
            return self._gave_way
        read = Window(map(self._with_message, window), window.totals)
        renewed = indexed(read, left, self._policy, self._entry_of)
        if renewed.change is not Change.INDEX:
            return self._gave_way
        renewed.apply_to(window)
        return renewed

    def _left(self, entry: Entry) -> Left:
        message = self._with_message(entry).message
        assert message is not None
        return Left(message, self._positions.get(entry, -1) + 1)

    def _with_message(self, entry: Entry) -> Entry:
        """Return an entry with its message. A stub and an index have theirs."""
        position = self._positions.get(entry)
        if position is None or entry.is_stub:
            return entry
        return replace(entry, message=self._said[position])

    def _entry_of(self, message: ChatMessage) -> Entry:
        return Entry.of(message, self._count(message))
