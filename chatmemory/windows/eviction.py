"""Eviction: the rule by which messages leave the head of a window.

`oldest_first` is the rule of LangChain4j's MessageWindowChatMemory and TokenWindowChatMemory: while
the window is over its limit, its oldest message is evicted. A system message is skipped only if it
is the first message. Tool results directly after an evicted tool call leave with the call.

Three rules are not LangChain4j's, and apply only if a policy or a pin asks for them:

- Pinned messages are skipped.
- The newest message is not evicted.
- If the beginning of a turn has left, the rest of the turn leaves, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, takewhile
from typing import NamedTuple, TypeVar

from chatmemory.messages.message import MessageType
from chatmemory.windows.window import NOTHING, Costs, Entry, Totals, Weighable, Window


class Reason(StrEnum):
    """The reason why a message left the window.

    - CAPACITY: the window was over its limit.
    - ORPHANED: the tool call of this tool result left.
    - REPLACED: a new system message replaced this system message.
    - CLEARED: memory was cleared.
    - SET: the message is not in the list that replaced the window.
    - MOVED: a new entry of the same message replaced this entry, such as after a move, a pin or a
      change of attributes. The message stays in the window.
    - TURN: the beginning of the message's turn left.
    - SUMMARIZED: a summary replaced the message.
    - STUBBED: a placeholder replaced this tool result.
    - INTERRUPTED: this tool call has too few results, or this result belongs to such a call.
    - INDEXED: a new index message replaced this index message.
    """

    CAPACITY = "CAPACITY"
    ORPHANED = "ORPHANED"
    REPLACED = "REPLACED"
    CLEARED = "CLEARED"
    SET = "SET"
    MOVED = "MOVED"
    TURN = "TURN"
    SUMMARIZED = "SUMMARIZED"
    STUBBED = "STUBBED"
    INTERRUPTED = "INTERRUPTED"
    INDEXED = "INDEXED"

    @property
    def is_for_room(self) -> bool:
        """Whether a policy evicted the message because there was no room."""
        return self in FOR_ROOM

    @property
    def is_beyond_limits(self) -> bool:
        """Whether the message would have left even with a larger limit, such as when memory was
        cleared.
        """
        return self in BEYOND_LIMITS


class CannotFit(StrEnum):
    """The reason why an added message cannot stay even after all possible evictions.

    - TOO_BIG: the message is larger than the limit.
    - TOO_BIG_BESIDE_SYSTEM: the message is larger than the room beside the system message.
    - SYSTEM_TOO_BIG: the system message is larger than the limit.
    - SYSTEM_FILLS: the system message leaves no room for even an empty message.
    - NO_ROOM_BESIDE_PINS: the pinned messages leave no room. Only steps from earlier versions of
      chatmemory have this reason. Today the add is refused.
    """

    TOO_BIG = "TOO_BIG"
    TOO_BIG_BESIDE_SYSTEM = "TOO_BIG_BESIDE_SYSTEM"
    NO_ROOM_BESIDE_PINS = "NO_ROOM_BESIDE_PINS"
    SYSTEM_TOO_BIG = "SYSTEM_TOO_BIG"
    SYSTEM_FILLS = "SYSTEM_FILLS"

    @property
    def is_of_system(self) -> bool:
        """Whether the system message leaves no room for any other message."""
        return self in (CannotFit.SYSTEM_TOO_BIG, CannotFit.SYSTEM_FILLS)


# The message stayed in the window, by another stay that began at the same step.
IN_PLACE = (Reason.MOVED, Reason.STUBBED)
FOR_ROOM = (Reason.CAPACITY, Reason.ORPHANED, Reason.TURN)
BEYOND_LIMITS = (Reason.CLEARED, Reason.SET, Reason.SUMMARIZED, Reason.INTERRUPTED)
REASONS = {reason.value: reason for reason in Reason}
# A look-up in the class takes as long as removing an entry.
_SYSTEM, _USER = MessageType.SYSTEM, MessageType.USER
_RESULT = MessageType.TOOL_EXECUTION_RESULT


class Eviction(NamedTuple):
    """An entry that leaves the window, and the reason.

    `because` is the message that caused the eviction:

    - for a tool result that left with its tool call, this call
    - for a replaced system message, the new system message
    - for a message that a summary replaces, the summary
    - for a cleared tool result, its placeholder
    - for an interrupted tool call, the message whose add removed the call
    - for a replaced index message, the new index message

    `because` is None for all other evictions. It can be None for the listed evictions, too, if no
    message or an unknown message caused them.

    `misfit` is the reason why an added message was too large to stay. It is set only in the
    evictions of a `ChangeResult`, else None.
    """

    entry: Entry
    reason: Reason
    because: Entry | None = None
    misfit: CannotFit | None = None

    @property
    def seq(self) -> int:
        return self.entry.seq

    @property
    def type(self) -> MessageType:
        return self.entry.type

    @property
    def has_calls(self) -> bool:
        return self.entry.has_calls

    @property
    def tokens(self) -> int:
        return self.entry.tokens

    @property
    def because_seq(self) -> int | None:
        """The number (seq) of the message that caused the eviction. None if no message did, or if a
        placeholder did: placeholders have no number.
        """
        if self.because is None or self.reason is Reason.STUBBED:
            return None
        return self.because.seq or None

    def with_entries(self, entries: Mapping[Entry, Entry]) -> Eviction:
        """Return the same eviction with other entry objects, such as entries with loaded messages.
        `entries` maps each entry to an equal entry that takes its place.
        """
        if self.entry not in entries and self.because not in entries:
            return self
        because = self.because and entries.get(self.because, self.because)
        return self._replace(entry=entries.get(self.entry, self.entry), because=because)


def oldest_first(
    head: Head, is_over: Callable[[Totals], bool], spares_newest: bool = False
) -> Iterator[Eviction]:
    """Evict the oldest messages until `is_over` is False for the totals of the remaining messages.
    Stops earlier if nothing more can leave. Yields the evictions.

    A leading system message and pinned messages stay. With `spares_newest`, the newest message
    stays as well; if the newest message is a tool result, its tool call and the call's other
    results stay.
    """
    while is_over(head.totals):
        oldest = head.oldest
        if head.at(oldest) is None or (spares_newest and head.is_of_newest(oldest)):
            return
        yield from head.evict_at(oldest)


def rest_of_turn(head: Head) -> Iterator[Eviction]:
    """Evict all messages before the first user message, from the oldest on, and yield the
    evictions. The leading system message and pinned messages stay. Nothing leaves if there is no
    user message.
    """
    oldest = head.oldest
    end = head.next_user(oldest)
    while end is not None and (oldest := head.unpinned(oldest)) < end:
        yield Eviction(head.take(oldest), Reason.TURN)
        end -= 1


def rest_of_question(head: Head) -> Iterator[Eviction]:
    """Evict the rest of the turn whose user message was evicted most recently, and yield the
    evictions.

    The rest ends before the next user message, or at the end of the window. Pinned messages and the
    message being added stay. Nothing leaves if no user message was evicted.
    """
    index = head.after_question
    while index is not None and (entry := head.at(index)) is not None and entry.type is not _USER:
        if entry.pinned or entry == head.arrival:
            index += 1
        else:
            yield Eviction(head.take(index), Reason.TURN)


class Head:
    """A working copy of a window, from which messages are removed to compute the effect of a
    change. `totals` are the number, tokens and costs of the messages that remain in the copy.

    The window itself does not change. Its entries are read from the beginning, and only when a
    method needs them.

    Policies with their own rule of eviction use `peek`, `pop` and `evict`. These methods take
    *positions*, which do not count pinned messages. The other methods take *indices*, which count
    all messages.
    """

    def __init__(self, entries: Iterable[Entry], totals: Totals, policy: Costs) -> None:
        self.totals = totals
        self._window = entries if isinstance(entries, Window) else None
        self._has_new_user = False
        self.after_question: int | None = None  # the place behind the user message that left last
        self.arrival: Entry | None = None
        self._weigh = policy.weigh
        self._read: list[Entry] = []
        self._unread = iter(entries)

    def peek(self, position: int = 0) -> Entry | None:
        """Return the message at a position, or None after the last message. Positions do not count
        pinned messages.
        """
        return self.at(self._index(position))

    def pop(self, position: int = 0) -> Entry | None:
        """Remove the message at a position from this copy of the window, and return the message.
        Returns None if the position is after the last message. Positions do not count pinned
        messages.

        Tool results of the message stay in the copy. The message leaves the window itself only if
        the policy also yields an `Eviction` of this message.
        """
        index = self._index(position)
        return self.take(index) if self.at(index) else None

    def evict(self, position: int = 0) -> list[Eviction]:
        """Evict the message at a position and, if the message has tool calls, the tool results
        directly after it. Returns the evictions; [] for a position after the last message.

        Positions do not count pinned messages.
        """
        index = self._index(position)
        return self.evict_at(index) if self.at(index) else []

    def _index(self, position: int) -> int:
        index = self.unpinned(0)
        for _ in range(position):
            index = self.unpinned(index + 1)
        return index

    @property
    def pinned(self) -> Totals:
        """The totals of the pinned messages, counted only among the messages that have been read
        from the window so far.
        """
        found = NOTHING
        for entry in self._read:
            if entry.pinned:
                found = found.plus(entry, self._weigh(entry))
        return found

    @property
    def leading_system(self) -> Entry | None:
        """The first message that is not pinned, if this message is a system message; otherwise
        None.
        """
        first = self.at(self.unpinned(0))
        return first if first is not None and first.type is _SYSTEM else None

    @property
    def oldest(self) -> int:
        """The index of the oldest message that is neither pinned nor the leading system message. If
        there is none, the index after the last message.
        """
        first = self.unpinned(0)
        entry = self.at(first)
        leads = entry is not None and entry.type is _SYSTEM
        return self.unpinned(first + 1) if leads else first

    def unpinned(self, index: int) -> int:
        """Return the index of the first message at or after `index` that is not pinned. If there is
        none, return the index after the last message.
        """
        while (entry := self.at(index)) is not None and entry.pinned:
            index += 1
        return index

    def at(self, index: int) -> Entry | None:
        """Return the message at an index, or None after the last message. Reads more of the window
        if necessary.
        """
        read = self._read
        while index >= len(read):
            entry = next(self._unread, None)
            if entry is None:
                return None
            read.append(entry)
        return read[index]

    def next_user(self, index: int) -> int | None:
        """Return the index of the first user message at or after `index`; None if there is none."""
        window = self._window
        if window is not None and window.users is not None and not self._has_new_user:
            before = set(self._read[:index])
            if all(user in before for user in window.users):
                return None
        while (entry := self.at(index)) is not None:
            if entry.type is _USER:
                return index
            index += 1
        if window is not None and window.users is None:
            window.users = [each for each in window if each.type is _USER]
        return None

    def is_of_newest(self, index: int) -> bool:
        """Return whether the message at an index is the newest message. A tool call and its results
        count as one message.
        """
        behind = index + 1
        if self._read[first_of_group(self._read, index)].has_calls:
            while self._has_result(behind):
                behind += 1
        return self.at(behind) is None

    def evict_at(self, index: int) -> list[Eviction]:
        """Evict the message at an index and, if the message has tool calls, the tool results
        directly after it. Returns the evictions.
        """
        victim = self.take(index)
        evictions = [Eviction(victim, Reason.CAPACITY)]
        while victim.has_calls and self._has_result(index):
            evictions.append(Eviction(self.take(index), Reason.ORPHANED, because=victim))
        return evictions

    def _has_result(self, index: int) -> bool:
        entry = self.at(index)
        return entry is not None and entry.type is _RESULT and not entry.pinned

    def take(self, index: int) -> Entry:
        """Remove and return the message at an index. The window must have been read up to that
        index.
        """
        entry = self._read.pop(index)
        self.totals = self.totals.minus(entry, self._weigh(entry))
        if entry.type is _USER:
            self.after_question = index
        elif self.after_question is not None and index < self.after_question:
            self.after_question -= 1
        return entry

    def remove(self, entry: Entry) -> None:
        """Remove a message from this copy of the window, even if the message has not been read from
        the window yet.
        """
        if entry in self._read:
            place = self._read.index(entry)
            del self._read[place]
            if self.after_question is not None and place < self.after_question:
                self.after_question -= 1
        else:
            self._unread = (each for each in self._unread if each != entry)
        self.totals = self.totals.minus(entry, self._weigh(entry))

    def place(self, entry: Entry, at_head: bool) -> None:
        """Insert into this copy of the window the message that is being added: before all other
        messages if `at_head` is True, else after them.
        """
        self._has_new_user |= entry.type is _USER
        self.arrival = entry
        if at_head:
            self._read.insert(0, entry)
            if self.after_question is not None:
                self.after_question += 1
        else:
            self._unread = chain(self._unread, (entry,))
        self.totals = self.totals.plus(entry, self._weigh(entry))

    def measure_with(self, policy: Costs) -> None:
        """Weigh all messages by another policy from now on, and compute the total cost again."""
        self._weigh = policy.weigh
        self._read += self._unread
        self._unread = iter(())
        self.totals = self.totals._replace(cost=sum(map(policy.weigh, self._read)))


def leading_system(entries: Iterable[Entry]) -> Entry | None:
    """Return the first message that is not pinned, if this message is a system message; otherwise
    None.
    """
    first = next((entry for entry in entries if not entry.pinned), None)
    return first if first is not None and first.type is _SYSTEM else None


M = TypeVar("M", bound=Weighable)


def group_of(entries: Sequence[M], position: int) -> Sequence[M]:
    """Return the messages that leave together with the message at a position, including this
    message.

    A tool call and the results directly after the call leave together. Any other message leaves
    alone.
    """
    first = first_of_group(entries, position)
    if not entries[first].has_calls:
        return entries[position : position + 1]
    behind = (entries[i] for i in range(first + 1, len(entries)))
    return [entries[first], *takewhile(_is_result, behind)]


def first_of_group(entries: Sequence[Weighable], position: int) -> int:
    """Return the position of the tool call to which the tool result at `position` belongs. Return
    `position` itself for any other message.
    """
    first = position
    while first and _is_result(entries[first]):
        first -= 1
    return first if entries[first].has_calls else position


def group_starts(entries: Sequence[Weighable]) -> list[int]:
    """Return for each message the position where its group starts. A tool result is in the group of
    its tool call; any other message starts a group of its own.
    """
    starts: list[int] = []
    call: int | None = None
    for position, entry in enumerate(entries):
        if not _is_result(entry):
            call = position if entry.has_calls else None
        starts.append(position if call is None else call)
    return starts


def _is_result(entry: Weighable) -> bool:
    return entry.type is _RESULT
