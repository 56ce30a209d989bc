"""The window that the model sees, now or at any step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import ExpressionWrapper, F, Field, IntegerField, QuerySet
from django.db.models import Window as Partition
from django.db.models.functions import Cast, RowNumber

from chatmemory.core.departures import Departures
from chatmemory.core.long_lists import (
    SEQ,
    TOKENS,
    TYPE,
    Columns,
    LongList,
    seqs_of,
)
from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.trimming import costs, departures
from chatmemory.core.window import Totals
from chatmemory.ledger.entries import read_message
from chatmemory.ledger.fetching import fetched
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_window import open_stays, stays_at
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.rows import MemoryRow
from chatmemory.queries.window_rows import (
    NoRoom,
    Place,
    WindowPlace,
    WindowRow,
    WindowView,
    parted,
    totals_of,
    visible,
    why_no_room,
)

HIDDEN_MAX = 500
# Columns as the database has them: SQLite's booleans would be converted one by one, also by its
# driver, and numbers by Django.
_HAS_CALLS, _PINNED = (
    ExpressionWrapper(Cast(name, IntegerField()), Field()) for name in ("has_calls", "pinned")
)
PLACE_COLUMNS = ("seq", "type", _HAS_CALLS, "tokens", "entered_step", _PINNED)
ENTERED = 4


@dataclass(frozen=True)
class SeenWindow:
    """The numbers and the totals of the messages that the model saw after a step."""

    step: int
    policy: Policy | None
    seqs: Sequence[int]
    totals: Totals


@dataclass(frozen=True)
class StoredState:
    """A conversation as it is stored at step `at`, or now, of which each part is read once.

    What is the same at `another` step is not read again.
    """

    memory: Memory
    at: int | None = None
    another: StoredState | None = None

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
    def _same(self) -> StoredState | None:
        """The other state, if no stay began or ended between both steps."""
        if self.another is None:
            return None
        step, other = self.step, self.another.step
        is_same = (step.last_stay, step.count_after) == (other.last_stay, other.count_after)
        return self.another if is_same else None

    @cached_property
    def places(self) -> LongList[WindowPlace]:
        """The places of the stays, with those that a lowered limit hides."""
        if self._same is not None:
            return self._same.places
        return LongList(fetched(self.stays.values_list(*PLACE_COLUMNS)), place)

    @cached_property
    def over_limit(self) -> Departures:
        """The positions of the places that a lowered limit hides."""
        if self._same is not None and self._same.policy == self.policy:
            return self._same.over_limit
        return departures(self.places.columns, totals_of(self.places), self.policy)

    @cached_property
    def window(self) -> WindowView[WindowPlace]:
        """The window as the model sees it."""
        return self._view(*parted(self.places, self.over_limit))

    def view(self, rows: LongList[Place]) -> WindowView[Place]:
        """Return the window of these rows, which are those of the stays."""
        return self._view(*visible(rows, self.policy))

    def _view(self, rows: LongList[Place], over_limit: LongList[Place]) -> WindowView[Place]:
        step = self.memory.last_step if self.at is None else self.at
        return WindowView(self.memory.pk, step, self.policy, rows, over_limit)

    @cached_property
    def injected(self) -> frozenset[int]:
        """The messages in the window that were never said, also hidden ones."""
        return injected_at(self.step)

    def seen(self) -> SeenWindow:
        """Return which messages the model sees. Only numbers are read if no limit hides any."""
        step = self.step
        stored = Totals(step.count_after, step.tokens_after)
        if can_decide(self.policy) and self.policy.is_exceeded_by(stored):
            return SeenWindow(step.n, self.policy, self.window.seqs, self.window.totals)
        if self._same is not None:
            return SeenWindow(step.n, self.policy, seqs_of(self.places), stored)
        seqs = [seq for (seq,) in fetched(self.stays.order_by().values_list("seq"))]
        return SeenWindow(step.n, self.policy, seqs, stored)


@one_snapshot()
def window(memory_id: str, at: int | None = None) -> WindowView[WindowRow]:
    """Return the window at step `at` with its messages. Raises MemoryNotFound, StepNotFound."""
    state = StoredState.of(memory_id, at)
    return state.view(_with_messages(state.stays))


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
    heads: dict[str, list[Columns]] = {memory_id: [] for memory_id in over}
    for memory_id, *columns in _heads(list(over)) if over else ():
        heads[memory_id].append(tuple(columns))
    return {memory_id: _over_limit(row, heads[memory_id]) for memory_id, row in over.items()}


def _over_limit(row: MemoryRow, head: Sequence[Columns]) -> OverLimit:
    positions = sorted(departures(head, row.window, row.policy).positions)
    hidden = tuple([head[position][SEQ] for position in positions])[:HIDDEN_MAX]
    if len(head) > HIDDEN_MAX or not can_decide(row.policy):
        return OverLimit(hidden)
    pinned = row.window.without(Totals(len(head), sum([columns[TOKENS] for columns in head])))
    kept = [head[position] for position in set(range(len(head))).difference(positions)]
    system = [columns[TOKENS] for columns in kept if columns[TYPE] == MessageType.SYSTEM.value][:1]
    room = row.policy.limit - row.policy.overhead - costs(row.policy, system)
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
        memory_id: (set(seqs_of(outline(memory_id).over_limit)) if memory_id in beyond else seqs)
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


def _with_messages(stays: QuerySet[Stay]) -> LongList[WindowRow]:
    return LongList(
        [_window_row(stay) for stay in stays.select_related("message")], WindowRow._make
    )


def place(columns: Columns) -> WindowPlace:
    """Return the place of its columns."""
    seq, type, has_calls, tokens, entered_step, pinned = columns
    return WindowPlace(seq, TYPES[type], bool(has_calls), tokens, entered_step, bool(pinned))


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
