"""Eviction: the rule by which messages leave the head of a window.

`oldest_first` is the rule of LangChain4j's MessageWindowChatMemory and TokenWindowChatMemory: while
the window is over its limit, its oldest message is evicted. A system message is skipped only if it
is the first message; anywhere else it is evicted like any other. Tool results directly behind an
evicted tool call leave with it.

Every eviction takes from the head, so a decision reads only the part of the window that it evicts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from chatmemory.core.messages import MessageType
from chatmemory.core.window import Entry, Totals, Window


class Reason(StrEnum):
    """The reason for which a message left the window."""

    CAPACITY = "CAPACITY"
    ORPHANED = "ORPHANED"
    REPLACED = "REPLACED"
    CLEARED = "CLEARED"
    SET = "SET"
    MOVED = "MOVED"


@dataclass(frozen=True)
class Eviction:
    """An entry that leaves, and the reason.

    `because` is the tool call with which a result leaves, or the system message that replaces one.
    """

    entry: Entry
    reason: Reason
    because: Entry | None = None


class Head:
    """A view of a window from which entries are taken; the window itself does not change.

    `totals` are those of the remaining entries.
    """

    def __init__(self, window: Window) -> None:
        self.totals: Totals = window.totals
        self._ahead = iter(window)
        self._front: deque[Entry] = deque()
        self._appended: deque[Entry] = deque()
        self._removed: set[Entry] = set()

    def peek(self, position: int = 0) -> Entry | None:
        """Return the remaining entry at a position, or None behind the last one."""
        while len(self._front) <= position:
            entry = self._next()
            if entry is None:
                return None
            self._front.append(entry)
        return self._front[position]

    def pop(self, position: int = 0) -> Entry | None:
        """Remove and return the remaining entry at a position; None behind the last one."""
        entry = self.peek(position)
        if entry is not None:
            del self._front[position]
            self._take(entry)
        return entry

    def remove(self, entry: Entry) -> None:
        """Remove an entry from any position."""
        if entry in self._front:
            self._front.remove(entry)
        self._take(entry)

    def place(self, entry: Entry, at_head: bool) -> None:
        """Add an entry at the head or at the end."""
        if at_head:
            self._front.appendleft(entry)
        else:
            self._appended.append(entry)
        self.totals = self.totals.plus(entry)

    def first_of(self, entries: Iterable[Entry]) -> Entry | None:
        """Return the first of `entries` that has not been removed, or None."""
        return next((entry for entry in entries if entry not in self._removed), None)

    def _next(self) -> Entry | None:
        for entry in self._ahead:
            if entry not in self._removed:
                return entry
        return self._appended.popleft() if self._appended else None

    def _take(self, entry: Entry) -> None:
        self._removed.add(entry)
        self.totals = self.totals.minus(entry)


def oldest_first(head: Head, is_over: Callable[[Totals], bool]) -> Iterator[Eviction]:
    """Evict the oldest message while `is_over`; a leading system message always stays."""
    while is_over(head.totals):
        first = head.peek()
        oldest = 1 if first is not None and first.type is MessageType.SYSTEM else 0
        victim = head.pop(oldest)
        if victim is None:
            return
        yield Eviction(victim, Reason.CAPACITY)
        if victim.has_calls:
            yield from results_behind(head, oldest, victim)


def results_behind(head: Head, position: int, call: Entry) -> Iterator[Eviction]:
    """Evict the tool results directly behind a call that has just left."""
    while (result := head.peek(position)) and result.type is MessageType.TOOL_EXECUTION_RESULT:
        head.pop(position)
        yield Eviction(result, Reason.ORPHANED, because=call)
