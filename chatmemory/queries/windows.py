"""The window that the model sees, now or at any step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import F, QuerySet
from django.db.models import Window as Partition
from django.db.models.functions import RowNumber

from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import Totals, total
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import open_stays, read_message, stays_at
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.rows import MemoryRow
from chatmemory.queries.window_rows import (
    NoRoom,
    Place,
    WindowPlace,
    WindowRow,
    WindowView,
    hidden_by,
    view_of,
    why_no_room,
)

HIDDEN_MAX = 500
PLACE_COLUMNS = WindowPlace._fields


@dataclass(frozen=True)
class SeenWindow:
    """The numbers and the totals of the messages that the model saw after a step."""

    step: int
    policy: Policy | None
    seqs: Sequence[int]
    totals: Totals


@dataclass(frozen=True)
class StoredState:
    """A conversation as it is stored at step `at`, or now, of which each part is read once."""

    memory: Memory
    at: int | None = None

    @classmethod
    def of(cls, memory_id: str, at: int | None = None) -> StoredState:
        """Return the state of a conversation. Raises MemoryNotFound."""
        return cls(find_memory(memory_id), at)

    @cached_property
    def step(self) -> Step:
        """The step, or the last one. Raises StepNotFound."""
        return find_step(self.memory, self.memory.last_step if self.at is None else self.at)

    @cached_property
    def policy(self) -> Policy | None:
        return self.memory.policy if self.at is None else self.step.policy

    @property
    def stays(self) -> QuerySet[Stay]:
        """The stays of the window, by rank."""
        is_last = self.at in (None, self.memory.last_step)
        return open_stays(self.memory.pk) if is_last else stays_at(self.step)

    @cached_property
    def places(self) -> tuple[WindowPlace, ...]:
        """The places of the stays, with those that a lowered limit hides."""
        return tuple(map(_place, self.stays.values_list(*PLACE_COLUMNS)))

    @cached_property
    def window(self) -> WindowView[WindowPlace]:
        """The window as the model sees it."""
        return self.view(self.places)

    def view(self, rows: Iterable[Place]) -> WindowView[Place]:
        """Return the window of these rows, which are those of the stays."""
        step = self.memory.last_step if self.at is None else self.at
        return view_of(self.memory.pk, step, self.policy, rows)

    @cached_property
    def injected(self) -> frozenset[int]:
        """The messages in the window that were never said, also hidden ones."""
        return injected_at(self.step)

    def seen(self) -> SeenWindow:
        """Return which messages the model sees."""
        return SeenWindow(self.step.n, self.policy, self.window.seqs, self.window.totals)


@one_snapshot()
def window(memory_id: str, at: int | None = None) -> WindowView[WindowRow]:
    """Return the window at step `at` with its messages. Raises MemoryNotFound, StepNotFound."""
    state = StoredState.of(memory_id, at)
    return state.view(map(_window_row, state.stays.select_related("message")))


@one_snapshot()
def outline(memory_id: str, at: int | None = None) -> WindowView[WindowPlace]:
    """Return the window at step `at` without texts, which is fast for thousands of messages.

    Raises MemoryNotFound, StepNotFound.
    """
    return StoredState.of(memory_id, at).window


def injected_at(step: Step) -> frozenset[int]:
    """Return the seqs of the messages in the window after a step that were never said."""
    if step.last_seq == step.said_count:
        return frozenset()
    stays = stays_at(step).filter(message__origin=Message.Origin.SYNTHETIC)
    return frozenset(stays.values_list("seq", flat=True))


def counted_otherwise_at(step: Step) -> dict[int, int]:
    """Return the tokens, as they were counted when they were said, of the messages in the window
    after a step that count otherwise there, by seq.

    Only a message with a second stay can: the estimator was another when it was said.
    """
    if step.last_stay == step.last_seq:
        return {}
    stays = stays_at(step).exclude(tokens=F("message__tokens"))
    return dict(stays.values_list("seq", "message__tokens"))


@dataclass(frozen=True)
class OverLimit:
    """What a lowered limit hides of a window, up to 500 messages, and why there is `no_room` for
    any other (see `WindowView`), which is not known of longer windows.
    """

    hidden: tuple[int, ...] = ()
    no_room: NoRoom | None = None


def over_limits_now(rows: Iterable[MemoryRow]) -> dict[str, OverLimit]:
    """Return what a lowered limit hides, by conversation that is over its limit.

    It is the first 500 in the window: a page of conversations reads no more of each.
    """
    over = {row.id: row for row in rows if row.is_over_limit}
    heads: dict[str, list[WindowPlace]] = {memory_id: [] for memory_id in over}
    for memory_id, *columns in _heads(list(over)) if over else ():
        heads[memory_id].append(_place(columns))
    return {memory_id: _over_limit(row, heads[memory_id]) for memory_id, row in over.items()}


def _over_limit(row: MemoryRow, head: Sequence[WindowPlace]) -> OverLimit:
    leaving = hidden_by(row.policy, head, row.window)
    hidden = tuple(place.seq for place in head if place.seq in leaving)[:HIDDEN_MAX]
    if len(head) > HIDDEN_MAX or not can_decide(row.policy):
        return OverLimit(hidden)
    pinned = row.window.without(total(head))
    kept = (place for place in head if place.seq not in leaving)
    system = next((place for place in kept if place.type is MessageType.SYSTEM), None)
    room = (
        row.policy.limit - row.policy.overhead - (row.policy.cost(system.tokens) if system else 0)
    )
    held = row.policy.load(*pinned) - row.policy.overhead
    return OverLimit(hidden, no_room=why_no_room(row.policy, held, room))


def hidden_wholly(
    hidden: Mapping[str, Collection[int]], rows: Iterable[MemoryRow]
) -> dict[str, Collection[int]]:
    """Return what is `hidden` without its bound: it reads the windows that may reach it.

    With options, what leaves can depend on messages behind the first ones.
    """
    beyond = {
        row.id
        for row in rows
        if len(hidden.get(row.id, ())) >= HIDDEN_MAX
        or (row.window.count > HIDDEN_MAX and row.policy and row.policy.has_window_options)
    }
    return {
        memory_id: (
            {row.seq for row in outline(memory_id).over_limit} if memory_id in beyond else seqs
        )
        for memory_id, seqs in hidden.items()
    }


def _heads(memory_ids: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return the ids and the columns of the first open stays of each conversation.

    There is one more than may be hidden, for a leading system message, which stays. Pinned ones
    stay as well, and are left out.
    """
    number = Partition(RowNumber(), partition_by="memory_id", order_by="rank")
    stays = Stay.objects.filter(memory_id__in=memory_ids, left_step=None, pinned=False)
    stays = stays.annotate(place=number)
    stays = stays.filter(place__lte=HIDDEN_MAX + 1).order_by("memory_id", "rank")
    return stays.values_list("memory_id", *PLACE_COLUMNS)


def _place(columns: Sequence[Any]) -> WindowPlace:
    seq, type, has_calls, tokens, entered_step, pinned = columns
    return WindowPlace(seq, TYPES[type], has_calls, tokens, entered_step, pinned)


def _window_row(stay: Stay) -> WindowRow:
    return WindowRow(
        seq=stay.seq,
        entered_step=stay.entered_step,
        type=MessageType(stay.type),
        has_calls=stay.has_calls,
        tokens=stay.tokens,
        pinned=stay.pinned,
        text=stay.message.text,
        message=read_message(stay.message),
    )
