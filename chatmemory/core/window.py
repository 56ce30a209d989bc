"""A window: the messages that the model sees, in order, as far as they have been read.

A window says nothing about limits. `policies` says how much fits, `eviction` takes messages from
the head, and `transitions` says what a change does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from chatmemory.core.messages import ChatMessage, MessageType


class Totals(NamedTuple):
    """How much a window holds: messages, and the sum of their tokens (no overhead)."""

    count: int = 0  # type: ignore[assignment]  # the right word, though tuples have such a method
    tokens: int = 0

    def plus(self, entry: Entry) -> Totals:
        return Totals(self.count + 1, self.tokens + entry.tokens)

    def minus(self, entry: Entry) -> Totals:
        return Totals(self.count - 1, self.tokens - entry.tokens)


@dataclass(frozen=True)
class Entry:
    """A message's place in a window, with what eviction needs to know about it.

    Two entries are equal when their keys are: a window may hold equal messages twice. `message` may
    be None where a store has not loaded it; system messages always carry theirs.
    """

    type: MessageType = field(compare=False)
    has_calls: bool = field(compare=False)
    tokens: int = field(compare=False)
    message: ChatMessage | None = field(default=None, compare=False, repr=False)
    key: object = field(default_factory=object)

    @classmethod
    def of(cls, message: ChatMessage, tokens: int = 0) -> Entry:
        return cls(message.type, message.has_tool_execution_requests, tokens, message)


class EntrySource(ABC):
    """Where a window's entries come from when they are not all in memory."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield the entries from the head on; reading further costs more."""

    @abstractmethod
    def systems(self) -> Iterable[Entry]:
        """Return the system messages in window order, each entry with its message."""

    @abstractmethod
    def with_messages(self) -> Iterable[Entry]:
        """Return every entry with its message."""


class Window:
    """The entries that the model sees, in order.

    `source` is an iterable of entries, or an `EntrySource` that is read from the head only as far
    as needed. Without `totals` all entries are read and added up. `counted_by` names the estimator
    family that counted the tokens, if one did.
    """

    def __init__(
        self,
        source: Iterable[Entry] | EntrySource = (),
        totals: Totals | None = None,
        counted_by: str | None = None,
    ) -> None:
        if isinstance(source, EntrySource):
            self._fill((), source)
        else:
            self._fill(source)
        self.totals = total(self) if totals is None else totals
        self.counted_by = counted_by

    def __iter__(self) -> Iterator[Entry]:
        yield from self._read
        while (entry := self._read_next()) is not None:
            yield entry
        yield from self._appended

    def systems(self) -> Iterator[Entry]:
        """Yield the system messages in window order; each entry carries its message."""
        return iter(tuple(self._known_systems()))

    def with_messages(self) -> list[Entry]:
        """Every entry with its message, in window order."""
        if self._source is None:
            return list(self)
        loaded = {entry: entry for entry in self._source.with_messages()}
        return [entry if entry.message else loaded[entry] for entry in self]

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        """Count every entry by one estimator family: O(window) where the family changes."""
        if family != self.counted_by:
            messages = ((entry, entry.message) for entry in self.with_messages())
            self.refill(replace(entry, tokens=count(m)) for entry, m in messages if m is not None)
            self.totals = total(self)
            self.counted_by = family

    # The three ways in which a window changes. Each leaves `totals` to the caller.

    def place(self, entry: Entry, at_head: bool) -> None:
        if entry.type is MessageType.SYSTEM:
            systems = self._known_systems()
            systems[entry] = None
            systems.move_to_end(entry, last=not at_head)
        if at_head:
            self._read[entry] = None
            self._read.move_to_end(entry, last=False)
        else:
            self._appended[entry] = None

    def discard(self, entry: Entry) -> None:
        if entry.type is MessageType.SYSTEM:
            self._known_systems().pop(entry, None)
        for known in (self._read, self._appended):
            if entry in known:
                del known[entry]
                return
        self._left_unread.add(entry)

    def refill(self, entries: Iterable[Entry]) -> None:
        """Hold just these entries; each system message must carry its message."""
        self._fill(entries)

    def _fill(self, entries: Iterable[Entry], source: EntrySource | None = None) -> None:
        self._read: OrderedDict[Entry, None] = OrderedDict((entry, None) for entry in entries)
        self._source = source
        self._unread = iter(()) if source is None else source.entries()
        self._appended: OrderedDict[Entry, None] = OrderedDict()
        self._left_unread: set[Entry] = set()
        self._systems: OrderedDict[Entry, None] | None = None

    def _read_next(self) -> Entry | None:
        for entry in self._unread:
            if entry not in self._left_unread:
                self._read[entry] = None
                return entry
        return None

    def _known_systems(self) -> OrderedDict[Entry, None]:
        """The system messages, read once and then kept up to date."""
        if self._systems is None:
            found = self if self._source is None else self._source.systems()
            self._systems = OrderedDict(
                (entry, None) for entry in found if entry.type is MessageType.SYSTEM
            )
        return self._systems


def total(entries: Iterable[Entry]) -> Totals:
    """Add up entries."""
    count = tokens = 0
    for entry in entries:
        count += 1
        tokens += entry.tokens
    return Totals(count, tokens)
