"""Simulation of adds with the recorder of real adds, without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from chatmemory.core.eviction import Reason
from chatmemory.core.long_lists import SEQ, TOKENS, Columns, LongList, tokens_of
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.trimming import departures, is_simple
from chatmemory.core.window import Totals
from chatmemory.ledger.adding import add_all, required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage, evictions
from chatmemory.ledger.counting import change_policy
from chatmemory.ledger.entries import stay_entries
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_window import open_stays, stays_at, stored_window
from chatmemory.models import Stay
from chatmemory.queries.rows import WindowPlace
from chatmemory.queries.windows import place, places, visible


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation: one change per message, and the resulting window in order.

    Simulated messages have the seqs after the last one of the step that the simulation starts from,
    and `entered_step` 0.
    """

    changes: tuple[ChangeResult, ...]
    remaining: LongList[WindowPlace]
    policy: Policy

    @property
    def totals(self) -> Totals:
        return Totals(len(self.remaining), sum(tokens_of(self.remaining)))


@one_snapshot()
def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
) -> Simulation:
    """Return the result of adding messages now or at step `at`, under its policy or another.

    Raises MemoryNotFound, StepNotFound, PolicyRequired (neither the step nor the call has a
    policy), PolicyUnavailable.
    """
    memory = find_memory(memory_id)
    step = find_step(memory, at) if at is not None else None
    stays = open_stays(memory_id) if step is None else stays_at(step)
    recorder = Recorder(memory, at=step)
    counted_by = recorder.window.counted_by
    if policy is not None:
        change_policy(recorder, policy)
    in_force = required_policy(memory)
    if recorder.window.counted_by == counted_by:
        rows = places(stays)
        changes = _add_all(recorder, messages, in_force, rows, stays)
    else:
        rows = _recounted(recorder)
        changes = add_all(recorder, [NewMessage(message) for message in messages])
    return Simulation(tuple(changes), _remaining(rows, changes, in_force), in_force)


def _recounted(recorder: Recorder) -> LongList[WindowPlace]:
    entries = stay_entries(recorder.window)
    return LongList([(e.seq, e.type, e.has_calls, e.tokens, 0, e.pinned) for e in entries], place)


def _add_all(
    recorder: Recorder,
    messages: Iterable[ChatMessage],
    policy: Policy,
    rows: LongList[WindowPlace],
    stays: QuerySet[Stay],
) -> list[ChangeResult]:
    """Add messages to the window of some stays, and return the changes.

    Under a lowered limit, the first add evicts what is over it before its message arrives. These
    may be hundreds of thousands: they are read as columns, and the recorder starts behind them.
    """
    added, before = [NewMessage(message) for message in messages], recorder.window.totals
    if not added:
        return []
    left = departures(rows.columns, before, policy) if is_simple(rows.columns, policy) else ()
    columns = rows.columns
    trimmed = [
        (*columns[i][: TOKENS + 1], Reason.CAPACITY, None, None)
        if call is None
        else (*columns[i][: TOKENS + 1], Reason.ORPHANED, columns[call][SEQ], None)
        for i, call in left
    ]
    if left:
        _start_behind(recorder, [i for i, _ in left], trimmed, stays)
    changes = add_all(recorder, added)
    return list(_with_trimmed(changes, before, trimmed)) if left else changes


def _start_behind(
    recorder: Recorder, positions: Sequence[int], trimmed: Sequence[Columns], stays: QuerySet[Stay]
) -> None:
    """Let the recorder start with the window without the first rows; it may keep one of them."""
    memory, end = recorder.memory, positions[-1] + 1
    ranks = stays.values_list("rank", flat=True)
    kept = next((i for i, position in enumerate(positions) if i != position), None)
    rest = Q(rank__in=[] if kept is None else [ranks[kept]])
    if end < memory.window_count:
        rest |= Q(rank__gte=ranks[end])
    memory.window_count -= len(trimmed)
    memory.window_tokens -= sum(columns[TOKENS] for columns in trimmed)
    recorder.window = stored_window(memory, stays.filter(rest))


def _with_trimmed(
    changes: Iterable[ChangeResult], before: Totals, trimmed: Sequence[Columns]
) -> Iterator[ChangeResult]:
    """Yield changes, the first of which also trimmed; those before it changed nothing."""
    changes = iter(changes)
    for change in changes:
        if not change.ignored:
            evicted = evictions((*trimmed, *change.evicted.columns))
            yield replace(change, before=before, evicted=evicted)
            break
        yield replace(change, before=before, after=before)
    yield from changes


def _remaining(
    rows: LongList[WindowPlace], changes: Sequence[ChangeResult], policy: Policy
) -> LongList[WindowPlace]:
    """Return the places of a window after changes, as a read gives them."""
    gone = {columns[SEQ] for change in changes for columns in change.evicted.columns}
    columns = [each for each in rows.columns if each[SEQ] not in gone]
    for change in changes:
        for arrived in change.arrived:
            is_system = arrived.type is MessageType.SYSTEM
            at_head = is_system and policy.always_keep_system_message_first
            if arrived.seq not in gone:
                columns.insert(0 if at_head else len(columns), (*arrived[: TOKENS + 1], 0, False))
    return visible(LongList(columns, place), policy)[0]
