"""Eviction: the rule by which messages leave the head of a window.

`oldest_first` is the rule of LangChain4j's MessageWindowChatMemory and TokenWindowChatMemory: while
the window is over its limit, its oldest message is evicted. A system message is skipped only if it
is the first message; anywhere else it is evicted like any other. Tool results directly behind an
evicted tool call leave with it.

Three rules are not LangChain4j's, and do nothing unless somebody asks for them: pinned messages are
passed over like a leading system message, the newest message may be spared, and the rest of a turn
that lost its beginning may leave as well.

Every eviction takes from the head, so a decision reads only the part of the window that it evicts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeVar

from chatmemory.core.messages import MessageType
from chatmemory.core.window import NOTHING, Entry, Totals, total


class Reason(StrEnum):
    """The reason for which a message left the window."""

    CAPACITY = "CAPACITY"
    ORPHANED = "ORPHANED"
    REPLACED = "REPLACED"
    CLEARED = "CLEARED"
    SET = "SET"
    MOVED = "MOVED"
    TURN = "TURN"


REASONS = {reason.value: reason for reason in Reason}
# Asking the class for them takes as long as removing an entry.
_SYSTEM, _RESULT = MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT


class Eviction(NamedTuple):
    """An entry that leaves, and the reason.

    `because` is the tool call with which a result leaves, or the system message that replaces one.
    """

    entry: Entry
    reason: Reason
    because: Entry | None = None

    def with_entries(self, entries: Mapping[Entry, Entry]) -> Eviction:
        """Return the eviction with entries replaced by those of the mapping."""
        if self.entry not in entries and self.because not in entries:
            return self
        entry = entries.get(self.entry, self.entry)
        return Eviction(
            entry, self.reason, self.because and entries.get(self.because, self.because)
        )


class Head:
    """A view of a window's entries from which some are taken; the window itself does not change.

    Pinned entries count in `totals`, which are those of the remaining entries, but cannot be taken:
    positions pass over them. `pinned` are the totals of those that were passed so far.
    """

    def __init__(self, entries: Iterable[Entry], totals: Totals) -> None:
        self.totals = totals
        self._pins: list[Entry] = []
        self._passed: list[Entry] = []  # the pinned entries since the last one that was not
        self._behind_pins: dict[object, Sequence[Entry]] = {}  # by key: the pins before an entry
        self._front: deque[Entry] = deque()
        self._appended: deque[Entry] = deque()
        self._removed: set[object] = set()  # keys of what could be met or asked for again
        # A generator of its own would keep the head in memory until Python looks for cycles
        self._ahead = _unpinned(entries, self._removed, self._pins, self._passed)

    @property
    def pinned(self) -> Totals:
        return total(self._pins) if self._pins else NOTHING

    def peek(self, position: int = 0) -> Entry | None:
        """Return the remaining entry at a position, or None behind the last one."""
        front = self._front
        while len(front) <= position:
            entry = next(self._ahead, None)
            if entry is None:
                if not self._appended:
                    return None
                entry = self._appended.popleft()
            if self._passed:
                self._behind_pins[entry.key] = tuple(self._passed)
                self._passed.clear()
            front.append(entry)
        return front[position]

    def pop(self, position: int = 0) -> Entry | None:
        """Remove and return the remaining entry at a position; None behind the last one."""
        front = self._front
        entry = front[position] if position < len(front) else self.peek(position)
        if entry is not None:
            del front[position]
            count, tokens = self.totals
            # A constructor of Python, or a call of its own, takes longer
            self.totals = tuple.__new__(Totals, (count - 1, tokens - entry.tokens))
            if entry.type is _SYSTEM:
                self._removed.add(entry.key)
        return entry

    def remove(self, entry: Entry) -> None:
        """Remove an entry from any position."""
        if entry in self._front:
            self._front.remove(entry)
        self.totals = self.totals.minus(entry)
        self._removed.add(entry.key)

    def place(self, entry: Entry, at_head: bool) -> None:
        """Add an entry at the head or at the end."""
        if at_head:
            self._front.appendleft(entry)
        else:
            self._appended.append(entry)
        self.totals = self.totals.plus(entry)

    def first_of(self, systems: Iterable[Entry]) -> Entry | None:
        """Return the first of these system messages that has not been removed, or None."""
        return next((entry for entry in systems if entry.key not in self._removed), None)

    @property
    def leading_system(self) -> Entry | None:
        """The system message at the head, before which only pinned messages may stand."""
        first = self._front[0] if self._front else self.peek()
        return first if first is not None and first.type is MessageType.SYSTEM else None

    @property
    def oldest(self) -> int:
        """The position of the oldest entry that may leave, behind a leading system message."""
        return 0 if self.leading_system is None else 1

    def ends_with(self, position: int) -> bool:
        """Return whether the entry at a position is the newest or belongs to the newest result:
        is its call, or the first of its siblings where the call is pinned.

        The results directly behind a call answer it.
        """
        entry = self.peek(position)
        behind = position + 1
        if entry is not None and (entry.has_calls or self._answers_a_pin(entry)):
            while self.has_result(behind):
                behind += 1
        return entry is not None and self.peek(behind) is None and not self._passed

    def _answers_a_pin(self, entry: Entry) -> bool:
        """Return whether an entry is a result directly behind a pinned call."""
        before = self._behind_pins.get(entry.key)
        if not before or entry.type is not _RESULT:
            return False
        return before[first_of_group(before, len(before) - 1)].has_calls

    def has_result(self, position: int) -> bool:
        """Return whether a tool result is at a position, directly behind the entry before it: one
        behind a pinned message answers no call before that.
        """
        front = self._front
        entry = front[position] if position < len(front) else self.peek(position)
        if entry is None or entry.type is not _RESULT:
            return False
        return entry.key not in self._behind_pins

    def next_user(self, start: int) -> int | None:
        """Return the position of the first user message from `start` on, or None.

        Of a pinned one, it is the position of the entry behind it.
        """
        position = start
        while (entry := self.peek(position)) and entry.type is not MessageType.USER:
            if position > start and _has_user(self._behind_pins.get(entry.key, ())):
                return position
            position += 1
        return position if entry or (position > start and _has_user(self._passed)) else None


def _unpinned(
    entries: Iterable[Entry], removed: set[object], pins: list[Entry], passed: list[Entry]
) -> Iterator[Entry]:
    """Yield what is neither pinned nor removed, and note which pins are passed on the way."""
    for entry in entries:
        if entry.pinned:
            pins.append(entry)
            passed.append(entry)
        elif entry.key not in removed:
            yield entry


def oldest_first(
    head: Head, is_over: Callable[[Totals], bool], spares_newest: bool = False
) -> Iterator[Eviction]:
    """Evict the oldest message while `is_over`; a leading system message always stays.

    With `spares_newest`, the newest message stays as well, with its call if it is a result, and
    with the other results of that call.
    """
    while is_over(head.totals):
        oldest = head.oldest
        if spares_newest and head.ends_with(oldest):
            return
        victim = head.pop(oldest)
        if victim is None:
            return
        yield Eviction(victim, Reason.CAPACITY)
        if victim.has_calls:
            yield from results_behind(head, oldest, victim)


def results_behind(head: Head, position: int, call: Entry) -> Iterator[Eviction]:
    """Evict the tool results directly behind a call that has just left."""
    while head.has_result(position) and (result := head.pop(position)):
        yield Eviction(result, Reason.ORPHANED, because=call)


class Groupable(Protocol):
    """What may be a tool call or its result."""

    @property
    def type(self) -> MessageType: ...

    @property
    def has_calls(self) -> bool: ...


G = TypeVar("G", bound=Groupable)


def group_of(entries: Sequence[G], position: int) -> Sequence[G]:
    """Return a message with what belongs to it: a tool call and the results directly behind it."""
    first = first_of_group(entries, position)
    if not entries[first].has_calls:
        return entries[position : position + 1]
    behind = (entries[i] for i in range(first + 1, len(entries)))
    return [entries[first], *takewhile(_is_result, behind)]


def first_of_group(entries: Sequence[Groupable], position: int) -> int:
    """Return the position of the tool call with which a result leaves; of others, their own."""
    first = position
    while first and _is_result(entries[first]):
        first -= 1
    return first if entries[first].has_calls else position


def before_next_user(head: Head) -> Iterator[Eviction]:
    """Evict what stands before the next user message; nothing if there is none."""
    oldest = head.oldest
    for _ in range(oldest, head.next_user(oldest) or 0):
        left = head.pop(oldest)
        assert left is not None
        yield Eviction(left, Reason.TURN)


def _is_result(entry: Groupable) -> bool:
    return entry.type is _RESULT


def _has_user(entries: Iterable[Entry]) -> bool:
    return any(entry.type is MessageType.USER for entry in entries)
