"""Maintains the index message in a replay (see `recall.index`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from chatmemory.exceptions import NoRoomBesidePins
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.recall.index import Left, given_way, indexed, is_for_index
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Change, Transition, admit
from chatmemory.windows.window import Entry, Window


class Indexing:
    """Maintains the index message in a replay. `said` are the messages of the history."""

    def __init__(self, policy: Policy, said: Sequence[ChatMessage]) -> None:
        self._policy, self._said = policy, said
        self._positions: dict[Entry, int] = {}
        self._count = partial(count_tokens, estimator_for(policy.estimator))
        self._gave_way: Transition | None = None

    def hear(self, position: int, arrival: Entry) -> None:
        self._positions[arrival] = position
        self._gave_way = None

    def admit(self, window: Window, arrival: Entry) -> Transition:
        """Return the transition that adds a message. If the message has no room beside the index,
        the index is first removed from the window.
        """
        try:
            return admit(window, arrival, self._policy)
        except NoRoomBesidePins:
            self._gave_way = given_way(window, self._policy)
            self._gave_way.apply_to(window)
            return admit(window, arrival, self._policy)

    def renew(
        self, window: Window, change: Transition, cleared: Iterable[Eviction]
    ) -> Transition | None:
        """Renew the index in the window after an add. `change` is the transition of the add.
        `cleared` are the tool results that were cleared before the add.

        Returns the transition that renewed or removed the index, else the transition in which
        `admit` removed it. None if the index did not change.
        """
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
        """Return an entry that has its message."""
        position = self._positions.get(entry)
        if position is None or entry.is_stub:
            return entry
        return replace(entry, message=self._said[position])

    def _entry_of(self, message: ChatMessage) -> Entry:
        return Entry.of(message, self._count(message))
