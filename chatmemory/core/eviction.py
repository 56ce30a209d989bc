"""How messages leave the head of a window, and why.

`oldest_first` is LangChain4j's rule (MessageWindowChatMemory and TokenWindowChatMemory share it):
a window over its limit loses its oldest message until it fits. Only a system message at the very
head is passed over; anywhere else it is a message like any other. Tool results directly behind an
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
    """Why a stay in the window ended."""

    CAPACITY = "CAPACITY"
    ORPHANED = "ORPHANED"
    REPLACED = "REPLACED"
    CLEARED = "CLEARED"
    SET = "SET"
    MOVED = "MOVED"


@dataclass(frozen=True)
class Eviction:
    """An entry that leaves, why, and with which tool call (for a result) or for which arrival."""

    entry: Entry
    reason: Reason
    because: Entry | None = None


class Head:
    """The head of a window, to take entries from; the window itself does not change.

    `totals` are those of what remains.
    """

    def __init__(self, window: Window) -> None:
        self.totals: Totals = window.totals
        self._ahead = iter(window)
        self._front: deque[Entry] = deque()
        self._appended: deque[Entry] = deque()
        self._gone: set[Entry] = set()

    def peek(self, position: int = 0) -> Entry | None:
        """Return the entry at a position of what remains, or None where the window ends."""
        while len(self._front) <= position:
            entry = self._next()
            if entry is None:
                return None
            self._front.append(entry)
        return self._front[position]

    def pop(self, position: int = 0) -> Entry | None:
        """Take out the entry at a position of what remains, or return None."""
        entry = self.peek(position)
        if entry is not None:
            del self._front[position]
            self._take(entry)
        return entry

    def remove(self, entry: Entry) -> None:
        """Take out an entry wherever it stands."""
        if entry in self._front:
            self._front.remove(entry)
        self._take(entry)

    def place(self, entry: Entry, at_head: bool) -> None:
        """Put an entry at the head, or behind everything else."""
        if at_head:
            self._front.appendleft(entry)
        else:
            self._appended.append(entry)
        self.totals = self.totals.plus(entry)

    def first_of(self, entries: Iterable[Entry]) -> Entry | None:
        """Return the first of `entries` that has not been taken out."""
        return next((entry for entry in entries if entry not in self._gone), None)

    def _next(self) -> Entry | None:
        for entry in self._ahead:
            if entry not in self._gone:
                return entry
        return self._appended.popleft() if self._appended else None

    def _take(self, entry: Entry) -> None:
        self._gone.add(entry)
        self.totals = self.totals.minus(entry)


def oldest_first(head: Head, is_over: Callable[[Totals], bool]) -> Iterator[Eviction]:
    """Evict the oldest message while `is_over`, or until only a head system message stays."""
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
    """Evict the tool results that stand directly behind a call which has just left."""
    while (behind := head.peek(position)) and behind.type is MessageType.TOOL_EXECUTION_RESULT:
        head.pop(position)
        yield Eviction(behind, Reason.ORPHANED, because=call)
