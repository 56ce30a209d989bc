"""The window and the one function that decides what leaves it.

`admit` says what an arriving message does to a window; `refill` says what remains when the whole
list is replaced. Both are pure: they return a `Transition` and change nothing. Live adds, stores,
simulation, replay and verification all apply or compare the same transitions.

The rules are LangChain4j's (MessageWindowChatMemory and TokenWindowChatMemory, which share them):

- A window over its limit loses its oldest message until it fits. Only a system message at the very
  head is passed over; anywhere else it is a message like any other.
- Tool results directly behind an evicted tool call leave with it.
- An add trims first, then appends, then trims again, asking the limit both times.
- A system message equal to the first one in the window is ignored. A different one replaces it and
  goes to the end, or to the head where `always_keep_system_message_first` is set.

Every eviction takes from the head, so a decision reads only the part of the window that it evicts.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy


class Reason(StrEnum):
    """Why a stay in the window ended."""

    CAPACITY = "CAPACITY"
    ORPHANED = "ORPHANED"
    REPLACED = "REPLACED"
    CLEARED = "CLEARED"
    SET = "SET"
    MOVED = "MOVED"


class Change(StrEnum):
    """What a transition does to the window."""

    ADD = "add"
    SET = "set"
    CLEAR = "clear"


class Totals(NamedTuple):
    """How much a window holds: messages, and the sum of their tokens (no overhead)."""

    count: int = 0  # type: ignore[assignment]  # the right word, though tuples have a method of it
    tokens: int = 0


@dataclass(frozen=True)
class Entry:
    """A message's place in a window, with what eviction needs to know of it.

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


@dataclass(frozen=True)
class Eviction:
    """An entry that leaves, why, and with which tool call (for a result) or for which arrival."""

    entry: Entry
    reason: Reason
    because: Entry | None = None


@dataclass(frozen=True)
class Transition:
    """What one change does to a window. `arrivals` is empty when an add was ignored.

    `evictions` come in the order in which they happen and may name an arrival: a message larger
    than the window leaves in the step that brought it. A SET's arrivals are the whole new list.
    `policy_before` bounded the trim that precedes an append, `policy` the one after it.
    """

    change: Change
    before: Totals
    after: Totals
    policy: Policy | None
    policy_before: Policy | None
    arrivals: tuple[Entry, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    at_head: bool = False

    @property
    def ignored(self) -> bool:
        return self.change is Change.ADD and not self.arrivals


class Window:
    """The entries that the model sees, in order, read from the head only as far as someone looks.

    `totals` must be given when the entries are lazy; otherwise they are all read and added up.
    """

    def __init__(self, entries: Iterable[Entry] = (), totals: Totals | None = None) -> None:
        self._fill(entries)
        self.totals = total(self) if totals is None else totals
        self.counted_by: str | None = None

    def __iter__(self) -> Iterator[Entry]:
        yield from self._read
        while (entry := self._read_next()) is not None:
            yield entry
        yield from self._appended

    def systems(self) -> Iterator[Entry]:
        """The system messages in window order; each entry carries its message."""
        return (entry for entry in self if entry.type is MessageType.SYSTEM)

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        """Have every entry's tokens counted by one estimator family; O(window) when it changes."""
        if family != self.counted_by:
            entries = [replace(e, tokens=count(e.message)) for e in self if e.message is not None]
            self._fill(entries)
            self.totals = total(entries)
            self.counted_by = family

    def apply(self, transition: Transition) -> None:
        """Become the window after `transition`, which must have been decided on this window."""
        if transition.ignored:
            return
        if transition.change is Change.ADD:
            self._place(transition.arrivals[0], transition.at_head)
        else:
            self._fill(transition.arrivals)
        for eviction in transition.evictions:
            self._discard(eviction.entry)
        self.totals = transition.after

    def _fill(self, entries: Iterable[Entry]) -> None:
        self._read: OrderedDict[Entry, None] = OrderedDict()
        self._unread = iter(entries)
        self._appended: OrderedDict[Entry, None] = OrderedDict()
        self._left_unread: set[Entry] = set()

    def _place(self, entry: Entry, at_head: bool) -> None:
        if at_head:
            self._read[entry] = None
            self._read.move_to_end(entry, last=False)
        else:
            self._appended[entry] = None

    def _discard(self, entry: Entry) -> None:
        for known in (self._read, self._appended):
            if entry in known:
                del known[entry]
                return
        self._left_unread.add(entry)

    def _read_next(self) -> Entry | None:
        for entry in self._unread:
            if entry not in self._left_unread:
                self._read[entry] = None
                return entry
        return None


def total(entries: Iterable[Entry]) -> Totals:
    count = tokens = 0
    for entry in entries:
        count += 1
        tokens += entry.tokens
    return Totals(count, tokens)


def admit(
    window: Window,
    arrival: Entry,
    policy: Policy,
    policy_again: Callable[[], Policy] | None = None,
) -> Transition:
    """What adding `arrival` does to `window`; nothing is changed.

    `policy_again` is asked after the append, as LangChain4j asks its limit provider twice.
    """
    scan = _Scan(window)
    evictions = _trim(scan, policy)
    if arrival.type is MessageType.SYSTEM:
        in_force = scan.first_of(window.systems())
        if in_force is not None and in_force.message == arrival.message:
            return Transition(Change.ADD, window.totals, window.totals, policy, policy)
        if in_force is not None:
            scan.remove(in_force)
            evictions.append(Eviction(in_force, Reason.REPLACED, because=arrival))
    at_head = arrival.type is MessageType.SYSTEM and policy.always_keep_system_message_first
    scan.place(arrival, at_head)
    policy_after = policy_again() if policy_again else policy
    evictions += _trim(scan, policy_after)
    return Transition(
        Change.ADD,
        before=window.totals,
        after=scan.totals,
        policy=policy_after,
        policy_before=policy,
        arrivals=(arrival,),
        evictions=tuple(evictions),
        at_head=at_head,
    )


def refill(window: Window, arrivals: Iterable[Entry], policy: Policy | None) -> Transition:
    """What replacing the whole list does: all of it stands, then what the limit refuses leaves.

    Without a policy the caller decides, and nothing is trimmed.
    """
    arrivals = tuple(arrivals)
    scan = _Scan(Window(arrivals))
    evictions = _trim(scan, policy) if policy else []
    return Transition(
        Change.SET,
        before=window.totals,
        after=scan.totals,
        policy=policy,
        policy_before=policy,
        arrivals=arrivals,
        evictions=tuple(evictions),
    )


def clear(window: Window, policy: Policy | None) -> Transition:
    """Everything leaves."""
    evictions = tuple(Eviction(entry, Reason.CLEARED) for entry in window)
    return Transition(Change.CLEAR, window.totals, Totals(), policy, policy, evictions=evictions)


def overflow(window: Window, policy: Policy) -> list[Eviction]:
    """What the next read under `policy` leaves out, and the next add evicts first."""
    return _trim(_Scan(window), policy)


def visible(window: Window, policy: Policy | None) -> list[Entry]:
    """The window as a read gives it: trimmed by the policy, nothing written back."""
    hidden = {eviction.entry for eviction in overflow(window, policy)} if policy else set()
    return [entry for entry in window if entry not in hidden]


def fold(window: Window, arrivals: Iterable[Entry], policy: Policy) -> Iterator[Transition]:
    """Add one after the other, moving `window` along; one transition each."""
    for arrival in arrivals:
        transition = admit(window, arrival, policy)
        window.apply(transition)
        yield transition


def _trim(scan: _Scan, policy: Policy) -> list[Eviction]:
    """Evict from the head until the load is within the limit or only a head system message
    stays.
    """
    evictions: list[Eviction] = []
    while policy.load(*scan.totals) > policy.limit:
        head = scan.peek(0)
        oldest = 1 if head is not None and head.type is MessageType.SYSTEM else 0
        victim = scan.pop(oldest)
        if victim is None:
            break
        evictions.append(Eviction(victim, Reason.CAPACITY))
        if victim.has_calls:
            evictions += _sweep_results(scan, oldest, victim)
    return evictions


def _sweep_results(scan: _Scan, position: int, call: Entry) -> Iterator[Eviction]:
    while (behind := scan.peek(position)) and behind.type is MessageType.TOOL_EXECUTION_RESULT:
        scan.pop(position)
        yield Eviction(behind, Reason.ORPHANED, because=call)


class _Scan:
    """A decision's scratch copy of a window: pops from the head without touching the window."""

    def __init__(self, window: Window) -> None:
        self.totals = window.totals
        self._ahead = iter(window)
        self._front: deque[Entry] = deque()
        self._appended: deque[Entry] = deque()
        self._gone: set[Entry] = set()

    def peek(self, position: int) -> Entry | None:
        while len(self._front) <= position:
            entry = self._next()
            if entry is None:
                return None
            self._front.append(entry)
        return self._front[position]

    def pop(self, position: int) -> Entry | None:
        entry = self.peek(position)
        if entry is not None:
            del self._front[position]
            self._gone.add(entry)
            self._count(entry, -1)
        return entry

    def remove(self, entry: Entry) -> None:
        if entry in self._front:
            self._front.remove(entry)
        self._gone.add(entry)
        self._count(entry, -1)

    def place(self, entry: Entry, at_head: bool) -> None:
        if at_head:
            self._front.appendleft(entry)
        else:
            self._appended.append(entry)
        self._count(entry, +1)

    def first_of(self, entries: Iterable[Entry]) -> Entry | None:
        """The first of `entries` that this scan has not taken out."""
        return next((entry for entry in entries if entry not in self._gone), None)

    def _next(self) -> Entry | None:
        for entry in self._ahead:
            if entry not in self._gone:
                return entry
        return self._appended.popleft() if self._appended else None

    def _count(self, entry: Entry, sign: int) -> None:
        count, tokens = self.totals
        self.totals = Totals(count + sign, tokens + sign * entry.tokens)
