"""Reads the window that the model sees, now or at any step, and finds the messages that
leave next.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from django.db.models import F, QuerySet

from chatmemory import database
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.overrides import text_of_stub
from chatmemory.ledger.sql import window_stays
from chatmemory.ledger.windows import (
    PART,
    in_parts,
    open_stays,
    read_message,
    shown_message,
    stays_at,
)
from chatmemory.messages.message import TYPES, ChatMessage, MessageType
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.snapshots import one_snapshot
from chatmemory.tables import SqlValue
from chatmemory.windows import transitions
from chatmemory.windows.clearing import old_results
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.recovery import InterruptedCall, interrupted_calls
from chatmemory.windows.stored_policies import can_decide, load_of, total_under
from chatmemory.windows.window import Entry, Totals


class NoRoom(StrEnum):
    """The reason why no message can be added to a window.

    - BESIDE_PINS: pinned messages leave no room, and the policy does not count turns.
    - BESIDE_TURNS: pinned messages leave no room, and the policy counts turns.
    - REJECTED: the system message and the overhead of a request leave no room, and the policy
      rejects oversized messages.
    """

    BESIDE_PINS = "BESIDE_PINS"  # pinned messages hold all the room
    BESIDE_TURNS = "BESIDE_TURNS"  # the same if only user messages cost anything
    REJECTED = "REJECTED"  # there is no room, and the policy rejects oversized messages


class MessageView(NamedTuple):
    """A message in a window.

    - `tokens`: the tokens of the message in this window. They can differ from the tokens in the
      history, as for a cleared tool result.
    - `pinned`: whether the message is pinned in this window.
    - `has_calls`: whether the message has tool calls.
    - `entered_step`: the step that added the message to the window; 0 if unknown, as for a
      simulated message.
    - `text`: the stored text, or "" if it was not loaded.
    - `read`: the message as an object, or None if it was not loaded.
    """

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    entered_step: int = 0
    pinned: bool = False
    text: str = ""
    read: ChatMessage | None = None

    @classmethod
    def of(cls, entry: Entry, policy: Policy | None) -> MessageView:
        """Return an entry as a `MessageView` without `entered_step` and `text`. The entry must have
        a seq.

        `read` is the entry's message if the policy hides interrupted tool calls, and the entry is a
        tool call or a tool result. Otherwise, `read` is None.
        """
        is_needed = can_decide(policy) and policy.recovers and entry.is_of_tools
        read = entry.message if is_needed else None
        facts = entry.type, entry.has_calls, entry.tokens
        return cls(entry.seq, *facts, pinned=entry.pinned, read=read)

    def entry(self, is_stub: bool = False) -> Entry:
        """Return the message as an `Entry` for policies. `is_stub` marks a cleared tool result."""
        facts = self.type, self.has_calls, self.tokens, self.read
        return Entry(*facts, key=self.seq, pinned=self.pinned, is_stub=is_stub, seq=self.seq)

    @property
    def message(self) -> ChatMessage:
        """The message as an object. The window must have been read with its messages."""
        assert self.read is not None, "the window was read without messages"
        return self.read


# The columns of a stay that a MessageView shows
VIEW_COLUMNS = ("seq", "type", "has_calls", "tokens", "entered_step", "pinned")


@dataclass(frozen=True)
class WindowView:
    """The window at a step: the messages that the model sees (`rows`), and the messages that the
    policy hides. Without a policy, nothing is hidden.

    - `over_limit`: messages that are still stored in the window, but that a lowered limit hides.
    - `interrupted`: interrupted tool calls that the policy hides, with their results.
    - `in_order`: all stored messages, shown and hidden.
    - `evictions`: the messages of `over_limit` and `interrupted`, with the reasons for their
      eviction. Usually, the next add evicts them.
    """

    step: int
    policy: Policy | None
    rows: tuple[MessageView, ...]
    over_limit: tuple[MessageView, ...]
    in_order: tuple[MessageView, ...]
    evictions: tuple[Eviction, ...] = ()
    interrupted: tuple[InterruptedCall, ...] = ()

    @cached_property
    def seqs(self) -> list[int]:
        return [row.seq for row in self.rows]

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The seqs of messages that are stored in the window, but hidden from the model."""
        return frozenset((*(row.seq for row in self.over_limit), *self.interrupted_seqs))

    @cached_property
    def interrupted_seqs(self) -> tuple[int, ...]:
        """The seqs of interrupted tool calls and of their results, in the order of the window."""
        return tuple(entry.seq for call in self.interrupted for entry in call.entries)

    def interrupted_call_of(self, seq: int) -> InterruptedCall | None:
        """Return the interrupted tool call to which a message belongs, as call or as result; else
        None.
        """
        if seq not in self.interrupted_seqs:
            return None
        return next(each for each in self.interrupted if seq in [e.seq for e in each.entries])

    @cached_property
    def totals(self) -> Totals:
        return total_under(self.policy, self.rows)

    @cached_property
    def stored(self) -> Totals:
        return total_under(self.policy, self.in_order)

    @property
    def load(self) -> int | None:
        return load_of(self.policy, self.totals)

    @property
    def system_at_head(self) -> MessageView | None:
        """The system message at the beginning of the window, or None."""
        first = self.rows[0] if self.rows else None
        return first if first and first.type is MessageType.SYSTEM else None

    @cached_property
    def first_system(self) -> MessageView | None:
        """The first system message in the window, or None. Other messages can stand before it."""
        return next((row for row in self.rows if row.type is MessageType.SYSTEM), None)

    @cached_property
    def no_room(self) -> NoRoom | None:
        """The reason why no message can be added. None if messages can be added, if there is no
        policy, or if the policy is not installed.
        """
        if not can_decide(self.policy):
            return None
        room = self.room_without_pins(self.policy)
        return why_no_room(self.policy, self.pinned_load(self.policy), room)

    def pinned_load(self, policy: Policy) -> int:
        """Return how much of the limit the pinned messages take, in the policy's unit."""
        return sum(policy.weigh(row) for row in self.rows if row.pinned)

    def room_without_pins(self, policy: Policy) -> int:
        """Return the size of the largest message that would fit beside the system message if
        nothing were pinned, in the policy's unit.
        """
        system = self.first_system
        return policy.limit - policy.overhead - (policy.weigh(system) if system else 0)

    @cached_property
    def horizon(self) -> int | None:
        """The seq of the oldest message in memory, apart from system messages and drafts. None if
        there is no such message.
        """
        spoken = (row for row in self.rows if row.type is not MessageType.SYSTEM)
        return min((row.seq for row in spoken if row.seq > 0), default=None)

    @cached_property
    def next_to_leave(self) -> tuple[int, ...]:
        """The seqs of the messages that leave next when the limit is reached. Empty if no message
        can leave, such as without a policy.

        - By default, these are one message and its tool results.
        - With an option such as `low_water`, these are all messages that the next trim evicts.
        """
        if not can_decide(self.policy) or self.no_room:
            return ()
        entries = (row.entry() for row in self.rows)
        leaving = transitions.next_to_leave(entries, self.totals, self.policy)
        return tuple(each.entry.seq for each in leaving)

    def next_to_clear(
        self, stubs: Container[int] = (), awaits_result: bool = False
    ) -> tuple[int, ...]:
        """Return the seqs of the tool results that the policy clears next, before any message
        leaves. Empty if the policy clears no tool results.

        `stubs` are the seqs of tool results that are cleared already. The policy leaves the newest
        tool results whole. With `awaits_result`, the next message is assumed to be a tool result
        and counts among the newest.
        """
        policy = self.policy
        if not can_decide(policy) or policy.meters_only or not policy.whole_results:
            return ()
        entries = (row.entry(is_stub=row.seq in stubs) for row in self.in_order)
        old = old_results(entries, policy.whole_results - awaits_result)
        return tuple(entry.seq for entry in old)

    @property
    def is_full(self) -> bool:
        """Whether adding the smallest possible message would evict another message. False without a
        policy, or if the policy is not installed.
        """
        policy = self.policy
        if not can_decide(policy):
            return False
        shortest = transitions.taking_room(policy, tokens=1)
        return policy.is_exceeded_by(self.totals.plus(shortest, policy.weigh(shortest)))

    @property
    def messages(self) -> list[ChatMessage]:
        """The messages that the model sees. The window must have been read with its messages."""
        return [row.message for row in self.rows]


def why_no_room(policy: Policy, pinned_load: int, room: int) -> NoRoom | None:
    """Return why no message can be added, or None if messages can be added.

    `room` is the limit minus the system message and the overhead of a request. `pinned_load` is how
    much of the limit the pinned messages take. Both numbers are in the policy's unit.
    """
    if policy.meters_only or room - pinned_load >= 1:
        return None
    larger = transitions.taking_room(policy, tokens=room + 1)
    if policy.keeps_newest and policy.weigh(larger) > room:
        return None  # a message larger than the limit is kept
    if room >= 1:
        is_of_turns = larger.type is MessageType.USER
        return NoRoom.BESIDE_TURNS if is_of_turns else NoRoom.BESIDE_PINS
    return NoRoom.REJECTED if policy.rejects_oversized else None


def view_of(step: int, policy: Policy | None, rows: Iterable[MessageView]) -> WindowView:
    """Return the window at a step. `rows` are all messages stored in the window, in order. In the
    result, messages that the policy hides are in `over_limit` or `interrupted`.

    If the policy hides interrupted tool calls, `read` must be set for the tool calls and tool
    results in `rows`.
    """
    stored = tuple(rows)
    if not can_decide(policy):
        return WindowView(step, policy, stored, (), stored)
    entries = [row.entry() for row in stored]
    interrupted = tuple(interrupted_calls(entries)) if policy.recovers else ()
    evictions = tuple(transitions.hidden_from_reads(entries, policy))
    hidden = {each.seq for each in evictions}
    over_limit = {each.seq for each in evictions if each.reason is not Reason.INTERRUPTED}
    return WindowView(
        step,
        policy,
        rows=tuple(row for row in stored if row.seq not in hidden),
        over_limit=tuple(row for row in stored if row.seq in over_limit),
        in_order=stored,
        evictions=evictions,
        interrupted=interrupted,
    )


@dataclass(frozen=True)
class StoredState:
    """A conversation as it is stored at step `at`, or now. Each part is read at its first use,
    once.
    """

    memory: Memory
    at: int | None = None

    @classmethod
    def of(cls, memory_id: str, at: int | None = None) -> StoredState:
        """Return the state of the conversation with this id. Raises MemoryNotFound."""
        return cls(find_memory(memory_id), at)

    @cached_property
    def step(self) -> Step:
        """The step `at`, or the last step. Raises StepNotFound."""
        return find_step(self.memory, self.memory.last_step if self.at is None else self.at)

    @cached_property
    def policy(self) -> Policy | None:
        return self.memory.policy if self.at is None else self.step.policy

    @property
    def past_step(self) -> Step | None:
        """The step `at`; None if the window is the current one, because `at` is None or the last
        step.
        """
        return None if self.at in (None, self.memory.last_step) else self.step

    @property
    def stays(self) -> QuerySet[Stay]:
        """The query for the stays of the messages in the window, in the order of the window."""
        past = self.past_step
        return open_stays(self.memory.pk) if past is None else stays_at(past)

    @cached_property
    def rows(self) -> tuple[MessageView, ...]:
        """All messages stored in the window, including hidden messages. If the policy hides
        interrupted tool calls, `read` is set for tool calls and tool results.
        """
        rows = tuple(map(view_from, window_stays(self.memory.pk, VIEW_COLUMNS, self.past_step)))
        return with_tool_messages(self.memory.pk, rows, self.policy)

    @cached_property
    def window(self) -> WindowView:
        """The window as the model sees it."""
        return self.view(self.rows)

    def view(self, rows: Iterable[MessageView]) -> WindowView:
        """Return these rows as a window, at the step and under the policy of this state."""
        step = self.memory.last_step if self.at is None else self.at
        return view_of(step, self.policy, rows)

    @cached_property
    def injected(self) -> frozenset[int]:
        """The seqs of messages in the window that are not in history, such as summaries. Hidden
        messages are included.
        """
        if self.step.last_seq == self.step.said_count:
            return frozenset()
        stays = stays_at(self.step).filter(message__origin=Message.Origin.SYNTHETIC)
        return frozenset(stays.values_list("seq", flat=True))


def with_tool_messages(
    memory_id: str, rows: Iterable[MessageView], policy: Policy | None
) -> tuple[MessageView, ...]:
    """Return the rows. If the policy hides interrupted tool calls, the field `read` is set for tool
    calls and tool results. Otherwise, the rows are unchanged.
    """
    rows = tuple(rows)
    if not can_decide(policy) or not policy.recovers:
        return rows
    unread = [row.seq for row in rows if row.read is None and row.entry().is_of_tools]
    found = Message.objects.filter(database.in_list("seq", unread), memory_id=memory_id)
    read = {row.seq: read_message(row) for row in found} if unread else {}
    return tuple(row._replace(read=read[row.seq]) if row.seq in read else row for row in rows)


@one_snapshot()
def window(memory_id: str, at: int | None = None) -> WindowView:
    """Return the window at step `at`, or now, with its messages. Raises MemoryNotFound,
    StepNotFound.
    """
    state = StoredState.of(memory_id, at)
    return state.view(map(_view_with_message, state.stays.select_related("message")))


def window_in_parts(
    memory_id: str, at: int | None = None
) -> tuple[WindowView, Iterable[ChatMessage]]:
    """Return the window at step `at`, or now, and an iterable of its messages. The iterable holds
    about a megabyte of messages at a time.

    Make this call and iterate in the same `one_snapshot` block. You can iterate several times.
    Raises MemoryNotFound, StepNotFound.
    """
    state = StoredState.of(memory_id, at)
    if at is None and state.memory.window_size <= PART:  # one query reads all
        whole = state.view(map(_view_with_message, state.stays.select_related("message")))
        return whole, whole.messages
    return state.window, _MessagesInParts(state.stays, state.window.hidden)


@dataclass(frozen=True)
class _MessagesInParts(Iterable[ChatMessage]):
    """The messages of these stays, without those whose seqs are `hidden`."""

    stays: QuerySet[Stay]
    hidden: frozenset[int]

    def __iter__(self) -> Iterator[ChatMessage]:
        for stay in in_parts(self.stays):
            if stay.seq not in self.hidden:
                yield shown_message(stay.message, stay.overrides)


@one_snapshot()
def outline(memory_id: str, at: int | None = None) -> WindowView:
    """Return the window at step `at`, or now, without texts. Fast for thousands of messages.

    Raises MemoryNotFound, StepNotFound.
    """
    return StoredState.of(memory_id, at).window


def recounted_tokens(step: Step) -> dict[int, int]:
    """Return a dict from seqs to token counts in the history. It has the messages whose token count
    in the window after `step` is different.

    The counts differ if they come from different estimators, or if the message is a cleared tool
    result.
    """
    if step.last_stay == step.last_seq:
        return {}
    stays = stays_at(step).exclude(tokens=F("message__tokens"))
    return dict(stays.values_list("seq", "message__tokens"))


def stubs_at(step: Step, seqs: Iterable[int]) -> dict[int, str]:
    """Return the placeholder texts of cleared tool results in the window after a step, by seq. Only
    messages with these `seqs` are looked at.
    """
    stays = stays_at(step).filter(database.in_list("seq", seqs), overrides__isnull=False)
    rows = stays.values_list("seq", "overrides", "message__text")
    found = {seq: text_of_stub(overrides, said) for seq, overrides, said in rows}
    return {seq: text for seq, text in found.items() if text is not None}


def view_from(columns: Sequence[SqlValue]) -> MessageView:
    """Return the message of a stay. `columns` are the VIEW_COLUMNS of the stay."""
    seq, type, has_calls, tokens, entered_step, pinned = columns
    return MessageView(seq, TYPES[type], bool(has_calls), tokens, entered_step, bool(pinned))


def _view_with_message(stay: Stay) -> MessageView:
    row = view_from([getattr(stay, name) for name in VIEW_COLUMNS])
    message = shown_message(stay.message, stay.overrides)
    return row._replace(text=stay.message.text, read=message)
