"""Simulation of adds with the recorder of real adds, without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from django.db.models import Q

from chatmemory.core.departures import PINNED, Departures
from chatmemory.core.estimators import family_named
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import (
    LongRecount,
    NoRoomBesidePins,
    OversizedMessage,
    PolicyRequired,
)
from chatmemory.core.long_lists import SEQ, TOKENS, Columns, LongList, seqs_of
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.trimming import leaving_ahead
from chatmemory.core.window import NOTHING, Entry, Totals, Window
from chatmemory.core.written_policies import given_policy
from chatmemory.ledger.adding import add_all, required_policy
from chatmemory.ledger.changes import REASON, ChangeResult, NewMessage, evictions
from chatmemory.ledger.counting import change_policy, counted_entries
from chatmemory.ledger.entries import stay_entries
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_window import stored_window
from chatmemory.models import Memory
from chatmemory.queries.window_rows import NoRoom, WindowPlace, WindowView, visible
from chatmemory.queries.windows import StoredState, place
from chatmemory.services.validation import storable_additions

RECOUNTED_AT_ONCE = 5_000  # messages, which take a second to count


@dataclass(frozen=True)
class Outlook:
    """What the model sees before simulated changes and would see after them, in totals.

    It would no longer see `leaving`, which are messages that it sees or that arrive, and would see
    `returning` again. `hidden` are those that a lowered limit hides already, and that leave too,
    unless there is `no_room`: then every message is refused, and nothing leaves for one.
    """

    before: Totals = NOTHING
    after: Totals = NOTHING
    leaving: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    returning: tuple[int, ...] = ()
    no_room: NoRoom | None = None


NO_OUTLOOK = Outlook()


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation: one change per message, of a stored window with these rows.

    Simulated messages have the seqs after the last one of the step that the simulation starts from,
    and `entered_step` 0. `seen` is the window that the model sees before it.
    """

    changes: tuple[ChangeResult, ...]
    policy: Policy
    rows: LongList[WindowPlace]
    seen: WindowView[WindowPlace]

    @cached_property
    def remaining(self) -> LongList[WindowPlace]:
        """The resulting window in order, as a read gives it."""
        return self._after(self.changes)

    def outlook(self, first: int = 0) -> Outlook:
        """Return what the changes from the position `first` on do to what the model sees."""
        past, changes = self.changes[:first], self.changes[first:]
        before = replace(self.window, rows=self._after(past)) if past else self.seen
        arrived = [seq for change in changes for seq in seqs_of(change.arrived)]
        known, kept = {*before.seqs, *arrived}, set(self.window.seqs)
        gone = {seq for change in past for seq in seqs_of(change.evicted)}
        told = known | kept | gone
        return Outlook(
            before=before.totals,
            after=self.totals,
            leaving=tuple([seq for seq in (*before.seqs, *arrived) if seq not in kept]),
            hidden=tuple([seq for seq in seqs_of(self.seen.over_limit) if seq not in told]),
            returning=tuple([seq for seq in self.window.seqs if seq not in known]),
            no_room=self.window.no_room,
        )

    def _after(self, changes: Sequence[ChangeResult]) -> LongList[WindowPlace]:
        """Return the window after the first changes, in order, as a read gives it."""
        gone = {columns[SEQ] for change in changes for columns in change.evicted.columns}
        columns = [each for each in self.rows.columns if each[SEQ] not in gone]
        for change in changes:
            for arrived in change.arrived:
                is_system = arrived.type is MessageType.SYSTEM
                at_head = is_system and self.policy.always_keep_system_message_first
                if arrived.seq not in gone:
                    at = 0 if at_head else len(columns)
                    columns.insert(at, (*arrived[: TOKENS + 1], 0, False))
        return visible(LongList(columns, place), self.policy)[0]

    @cached_property
    def window(self) -> WindowView[WindowPlace]:
        """The resulting window, of which nothing is hidden."""
        nothing = self.remaining[:0]
        return replace(self.seen, policy=self.policy, rows=self.remaining, over_limit=nothing)

    @property
    def totals(self) -> Totals:
        return self.window.totals


@one_snapshot()
def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
    recount: bool = True,
) -> Simulation:
    """Return the result of adding messages now or at step `at`, under its policy or another.

    A policy whose estimator counts differently has all messages in memory counted anew; more than
    5,000 only with `recount`. Raises MemoryNotFound, StepNotFound, PolicyRequired (neither the step
    nor the call has a policy), PolicyUnavailable, LongRecount, MessageTooLarge, UnstorableText.
    """
    return simulated(StoredState.of(memory_id, at), messages, given_policy(policy), recount)


def simulated(
    stored: StoredState,
    messages: Iterable[ChatMessage],
    policy: Policy | None,
    recount: bool = True,
) -> Simulation:
    """Return the same of a conversation that is already read."""
    memory = copy(stored.memory)
    recorder = Recorder(memory, at=None if stored.at is None else stored.step)
    counted_by = recorder.window.counted_by
    if policy is not None:
        if not recount:
            _check_recount(memory, policy)
        change_policy(recorder, policy)
    in_force = _in_force(memory, stored)
    added = storable_additions(messages)
    if recorder.window.counted_by == counted_by:
        changes = _add_all(recorder, added, stored)
        return Simulation(tuple(changes), in_force, stored.places, stored.window)
    rows = _recounted(recorder)
    return Simulation(tuple(add_all(recorder, added)), in_force, rows, stored.window)


def _in_force(memory: Memory, stored: StoredState) -> Policy:
    """Return the policy of a simulation. Raises PolicyRequired."""
    if memory.policy is None and stored.at == 0 and stored.memory.policy is not None:
        raise PolicyRequired(
            f"which policy {memory.pk!r} had at step 0 is not recorded: give one to try"
        )
    advice = "set a policy before simulating, or give one to try"
    return required_policy(memory.pk, memory.policy, advice)


def _check_recount(memory: Memory, policy: Policy) -> None:
    """Raise LongRecount if a policy has very many messages counted anew."""
    is_same = family_named(policy.estimator) == family_named(memory.policy_estimator)
    if not is_same and memory.window_count > RECOUNTED_AT_ONCE:
        raise LongRecount(policy.estimator, memory.window_count)


def _recounted(recorder: Recorder) -> LongList[WindowPlace]:
    entries = stay_entries(recorder.window)
    return LongList([(e.seq, e.type, e.has_calls, e.tokens, 0, e.pinned) for e in entries], place)


def _add_all(
    recorder: Recorder, added: Sequence[NewMessage], stored: StoredState
) -> list[ChangeResult]:
    """Add messages to the window of a stored state, and return the changes.

    The first add without room can evict hundreds of thousands: under a lowered limit before its
    message arrives. They are read as columns, and the recorder starts behind them.
    """
    policy, before, columns = recorder.policy, recorder.window.totals, stored.places.columns
    if not added or policy is None:
        return []
    arrivals = counted_entries(recorder.memory, [new.message for new in added])
    fitting = _fitting(arrivals, before, policy)
    if fitting == len(arrivals):
        return add_all(recorder, added)
    for arrival in arrivals[:fitting]:
        before = before.plus(arrival)
    rows = [*columns, *map(_columns, arrivals[:fitting])]
    same = _same_systems(recorder.window, arrivals[fitting], columns)
    known = None if fitting or policy != stored.policy else stored.over_limit
    left = leaving_ahead(rows, before, _columns(arrivals[fitting]), policy, same, known)
    if not left.positions or left.positions[-1] >= len(columns):
        return add_all(recorder, added)
    changes = add_all(recorder, added[:fitting])
    _start_behind(recorder, left.positions, stored)
    recorder.window.is_trimmed = not left.is_all
    try:
        behind = add_all(recorder, added[fitting:])
    except (OversizedMessage, NoRoomBesidePins) as error:
        error.index = fitting + (error.index or 0)
        raise
    return [*changes, *_with_ahead(behind, before, _evicted(columns, left), left.ahead)]


def _fitting(arrivals: Sequence[Entry], totals: Totals, policy: Policy) -> int:
    """Return how many messages come before the first one that has no room, or may replace one."""
    for n, arrival in enumerate(arrivals):
        totals = totals.plus(arrival)
        if arrival.type is MessageType.SYSTEM or policy.is_exceeded_by(totals):
            return n
    return len(arrivals)


def _same_systems(window: Window, arrival: Entry, rows: Sequence[Columns]) -> set[int]:
    """Return the positions of the system messages of a window that are equal to an arrival."""
    if arrival.type is not MessageType.SYSTEM:
        return set()
    systems = stay_entries(window.systems())
    seqs = {each.seq for each in systems if each.message == arrival.message}
    return {i for i, row in enumerate(rows) if row[SEQ] in seqs} if seqs else set()


def _columns(arrival: Entry) -> Columns:
    return 0, arrival.type, arrival.has_calls, arrival.tokens, 0, False


def _evicted(rows: Sequence[Columns], left: Departures) -> list[Columns]:
    """Return the columns of evictions from those of places."""
    end, calls = len(left.positions) - left.rest, left.calls
    oldest, orphaned, turn = Reason.CAPACITY.value, Reason.ORPHANED.value, Reason.TURN.value
    gone = [
        (seq, type, has_calls, tokens, oldest, None, None)
        if i not in calls
        else (seq, type, has_calls, tokens, orphaned, rows[calls[i]][SEQ], None)
        for i in left.positions[:end]
        for seq, type, has_calls, tokens, _, _ in (rows[i],)
    ]
    return gone + [(*rows[i][: TOKENS + 1], turn, None, None) for i in left.positions[end:]]


def _start_behind(recorder: Recorder, positions: Sequence[int], stored: StoredState) -> None:
    """Let the recorder start with the window without some of the first rows.

    Those that stay among them are pinned, or a system message. What it added stays at the end.
    """
    memory, rows, end = recorder.memory, stored.places.columns, positions[-1] + 1
    kept = set(range(end)).difference(positions)
    pinned = {position for position in kept if rows[position][PINNED]}
    ranks = stored.stays.values_list("rank", flat=True)
    rest = Q(rank__in=[ranks[position] for position in kept - pinned])
    if pinned:
        rest |= Q(pinned=True)
    if end < len(rows):
        rest |= Q(rank__gte=ranks[end])
    memory.window_count -= len(positions)
    memory.window_tokens -= sum([rows[i][TOKENS] for i in positions])
    added = recorder.window.appended()
    recorder.window = stored_window(memory, stored.stays.filter(rest))
    for entry in added:
        recorder.window.place(entry, at_head=False)


def _with_ahead(
    changes: Iterable[ChangeResult], before: Totals, left: Sequence[Columns], ahead: int
) -> Iterator[ChangeResult]:
    """Yield changes, the first of which also evicted some; those before it changed nothing.

    So many left ahead of a system message that it replaced.
    """
    changes = iter(changes)
    for change in changes:
        if not change.ignored:
            others = change.evicted.columns
            first = int(bool(others) and others[0][REASON] == Reason.REPLACED)
            evicted = evictions((*left[:ahead], *others[:first], *left[ahead:], *others[first:]))
            yield replace(change, before=before, evicted=evicted)
            break
        yield replace(change, before=before, after=before)
    yield from changes
