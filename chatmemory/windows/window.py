"""A window: the messages that the model sees next, in order.

A window has no limit. `policies` define how much fits, `eviction` takes messages from the head, and
`transitions` define the effect of each change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from chatmemory.messages.message import ChatMessage, MessageType


class Totals(NamedTuple):
    """The number of messages in a window, the sum of their tokens, and the sum of their costs.

    A message's cost is the part of a policy's limit that the message takes (`Policy.weigh`). `cost`
    is 0 if no policy has measured the messages. The overhead of a request is not included.
    """

    count: int = 0  # type: ignore[assignment]  # hides tuple.count, which nothing here calls
    tokens: int = 0
    cost: int = 0

    def plus(self, message: Counted, cost: int = 0) -> Totals:
        return Totals(self.count + 1, self.tokens + message.tokens, self.cost + cost)

    def minus(self, message: Counted, cost: int = 0) -> Totals:
        return Totals(self.count - 1, self.tokens - message.tokens, self.cost - cost)

    def without(self, others: Totals) -> Totals:
        count, tokens, cost = others
        return Totals(self.count - count, self.tokens - tokens, self.cost - cost)


NOTHING = Totals()
SAID = "SAID"  # the origin of messages of the history; others are SYNTHETIC


# Wide: a window has thousands of entries, and a value inside each would double the objects.
@dataclass(slots=True, eq=False)
class Entry:
    """A message in a window, with the values by which eviction decides.

    - `message` is None if the store has not loaded the message. A system message is always loaded.
    - `key` identifies the entry: entries with the same key are equal. A window may have equal
      messages with different keys.
    - A `pinned` entry is never evicted.
    - `is_stub` is True for the placeholder of a cleared tool result (see `clearing`).

    A ledger sets the fields from `n` on:

    - `n` is the number that identifies the message's stay in memory. It is also the entry's `key`.
      Without a stay, `n` is 0.
    - `seq` is the number of the message in the conversation.
    - `rank` is a number by which the entries of a window are sorted.
    - `size` is the length of the message's JSON in bytes, with attributes.
    - `frame` is the JSON of a new message, with a gap for its text (see `messages.codec.frames`).
      It is "" for a message read from the database.
    - `origin` is "SAID" for a message in the history, and "SYNTHETIC" for any other message. In an
      entry that was read from the database, it is always "SAID".
    - `overrides` is JSON with the text or the attributes that memory shows instead of the stored
      text or attributes; None if nothing differs. `message` already has the overrides.

    Do not change an entry. The class is not frozen, because frozen objects take three times as long
    to make.
    """

    type: MessageType
    has_calls: bool
    tokens: int
    message: ChatMessage | None = field(default=None, repr=False)
    key: object = field(default_factory=object)
    pinned: bool = False
    is_stub: bool = False
    n: int = 0
    seq: int = 0
    rank: int = 0
    size: int = 0
    origin: str = SAID
    frame: str = field(default="", repr=False)
    overrides: str | None = field(default=None, repr=False)

    @property
    def is_of_tools(self) -> bool:
        """Whether the message is a tool call or a tool result."""
        return self.has_calls or self.type is MessageType.TOOL_EXECUTION_RESULT

    @property
    def is_injected(self) -> bool:
        """Whether the message is in the window but not in the history, such as a summary. Nobody
        said the message: a client or chatmemory itself put it into the window.
        """
        return self.origin != SAID

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def of(cls, message: ChatMessage, tokens: int = 0) -> Entry:
        return cls(message.type, message.has_tool_execution_requests, tokens, message)


class EntrySource(ABC):
    """A source from which a window loads its entries on demand, such as a database."""

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """Yield the entries from the head on. Each part of the window is loaded only when the
        iteration reaches it.
        """

    @abstractmethod
    def systems(self) -> Iterable[Entry]:
        """Return the entries of the system messages in window order, with their messages."""

    @abstractmethod
    def with_messages(self) -> Iterable[Entry]:
        """Return every entry with its message, in window order."""


class Window:
    """The messages that the model sees next, as entries in order.

    - `source` is an iterable of entries, or an `EntrySource`, which is read from the head on
      demand.
    - `totals` are the totals of all entries. If you pass none, all entries are read and added up.
    - `counted_by` names the estimator family that counted the tokens; None if the tokens were not
      counted.
    - `measured_by` is the policy that computed the cost in `totals`; None if no policy has computed
      it.
    - `users` are the entries of user messages; None until a method first searches for them.
    """

    # An add through a database reads only the first entries, since evictions start at the head:
    # reading 1,000 takes several times as long as the add. `_read` has been read, `_unread` is
    # still in the source, and `_appended` was added after that.

    def __init__(
        self,
        source: Iterable[Entry] | EntrySource = (),
        totals: Totals | None = None,
        counted_by: str | None = None,
        measured_by: Costs | None = None,
    ) -> None:
        if isinstance(source, EntrySource):
            self._fill((), source)
        else:
            self._fill(source)
        self.totals = total(self) if totals is None else totals
        self.counted_by = counted_by
        self.measured_by = measured_by

    def _fill(self, entries: Iterable[Entry], source: EntrySource | None = None) -> None:
        self._source = source
        self._read = list(entries)
        self._unread = iter(()) if source is None else source.entries()
        self._appended: list[Entry] = []
        self._has_changed = False
        self._systems: list[Entry] | None = None
        self.users: list[Entry] | None = None

    def __iter__(self) -> Iterator[Entry]:
        yield from self._read
        for entry in self._unread:
            self._read.append(entry)
            yield entry
        yield from self._appended

    def systems(self) -> list[Entry]:
        """Return the entries of the system messages in window order, with their messages."""
        return list(self._known_systems())

    def with_system_messages(self) -> list[Entry]:
        """Return every entry in window order, with the messages of system messages loaded. The
        `message` of other entries can be None.
        """
        systems = {each: each for each in self.systems()}
        return [systems.get(each, each) for each in self]

    def with_messages(self) -> list[Entry]:
        """Return every entry with its message, in window order."""
        is_untouched = not self._read and not self._appended and not self._has_changed
        if self._source is not None and is_untouched:
            self._fill(self._source.with_messages())
        if self._source is None:
            return list(self)
        loaded = {entry: entry for entry in self._source.with_messages()}
        return [entry if entry.message else loaded[entry] for entry in self]

    def with_tool_messages(self) -> list[Entry]:
        """Return every entry in window order, with the messages of tool calls and tool results
        loaded. The `message` of other entries can be None.
        """
        entries = list(self)
        unread = [entry for entry in entries if entry.message is None and entry.is_of_tools]
        loaded = self._loaded(unread) if unread else {}
        return [loaded.get(entry, entry) for entry in entries]

    def loaded(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return `entries` with their messages loaded. The returned list may also contain other
        entries of the window.
        """
        return [*self._loaded(entries).values()]

    def _loaded(self, entries: Sequence[Entry]) -> dict[Entry, Entry]:
        """Map each of these entries of the window to the same entry with its message loaded."""
        return {entry: entry for entry in self.with_messages()}

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        """Count the tokens of every entry with `count`, the counting function of an estimator.
        `family` is the family of this estimator, or None without an estimator.

        If the tokens were last counted with the same `family`, nothing is read or counted.
        """
        if family != self.counted_by:
            messages = ((entry, entry.message) for entry in self.with_messages())
            self.refill(replace(entry, tokens=count(m)) for entry, m in messages if m is not None)
            self.totals = total(self)
            self.counted_by = family
            self.measured_by = None

    def measure_with(self, policy: Costs) -> Totals:
        """Compute the cost of the window under a policy, and return the totals with this cost.

        The entries are not read if a policy with equal costs measured the window last, or if
        `Policy.cost_of` returns the cost.
        """
        if self.measured_by is None or not policy.costs_like(self.measured_by):
            cost = policy.cost_of(self.totals)
            cost = sum(map(policy.weigh, self)) if cost is None else cost
            self.totals = self.totals._replace(cost=cost)
        self.measured_by = policy
        return self.totals

    def cost_after(self, arrived: Iterable[Entry], left: Iterable[Entry]) -> int:
        """Return the cost that the window has after the entries `arrived` are added and the entries
        `left` are removed.

        The cost is that of the policy that last measured the window. Without such a policy, it is
        0.
        """
        if self.measured_by is None:
            return 0
        weigh = self.measured_by.weigh
        return self.totals.cost + sum(map(weigh, arrived)) - sum(map(weigh, left))

    # The methods below change the window. The caller updates `totals`.

    def place(self, entry: Entry, at_head: bool) -> None:
        """Add an entry at the head of the window if `at_head` is True, else at the end."""
        self._has_changed = True
        if entry.type is MessageType.SYSTEM:
            systems = self._known_systems()
            systems.insert(0 if at_head else len(systems), entry)
        if entry.type is MessageType.USER and self.users is not None:
            self.users.insert(0 if at_head else len(self.users), entry)
        if at_head:
            self._read.insert(0, entry)
        elif self._source is None:
            self._read.append(entry)
        else:
            self._appended.append(entry)

    def discard(self, entry: Entry) -> None:
        """Remove an entry, even if the window has not yet read the entry from its source."""
        self._has_changed = True
        if entry.type is MessageType.SYSTEM:
            self._known_systems().remove(entry)
        if entry.type is MessageType.USER and self.users is not None:
            self.users.remove(entry)
        for known in (self._read, self._appended):
            if entry in known:
                known.remove(entry)
                return
        self._unread = (each for each in self._unread if each != entry)

    def refill(self, entries: Iterable[Entry]) -> None:
        """Replace all entries. Entries of system messages must have their messages."""
        self._fill(entries)

    def _known_systems(self) -> list[Entry]:
        if self._systems is None:
            found = self if self._source is None else self._source.systems()
            self._systems = [entry for entry in found if entry.type is MessageType.SYSTEM]
        return self._systems


class Counted(Protocol):
    """Anything that has a number of tokens, such as an entry or a database row of a window."""

    @property
    def tokens(self) -> int: ...


class Weighable(Counted, Protocol):
    """Anything that takes a part of a policy's limit, such as an entry or a database row of a
    message.
    """

    @property
    def type(self) -> MessageType: ...

    @property
    def has_calls(self) -> bool: ...


class Costs(Protocol):
    """The methods of a policy that tell the costs of messages: how much of the limit the messages
    take.
    """

    def weigh(self, message: Weighable) -> int: ...

    def cost_of(self, totals: Totals) -> int | None: ...

    def costs_like(self, other: Any) -> bool: ...  # a policy, which imports this module


def total(entries: Iterable[Counted]) -> Totals:
    """Return the totals of the given entries: their number and the sum of their tokens. The field
    `cost` is 0.
    """
    count = tokens = 0
    for entry in entries:
        count += 1
        tokens += entry.tokens
    return Totals(count, tokens)
