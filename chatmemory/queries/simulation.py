"""Simulation of adds with the recorder of real adds, without writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory.core.estimators import family_named
from chatmemory.core.exceptions import LongRecount, PolicyRequired
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import NOTHING, Entry, Totals, total
from chatmemory.core.written_policies import given_policy
from chatmemory.ledger.adding import add_all, change_policy, required_policy
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import stay_entries
from chatmemory.models import Memory
from chatmemory.queries.window_rows import NoRoom, WindowPlace, WindowView, entries_of, view_of
from chatmemory.queries.windows import StoredState
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
    rows: tuple[WindowPlace, ...]
    seen: WindowView[WindowPlace]

    @cached_property
    def remaining(self) -> tuple[WindowPlace, ...]:
        """The resulting window in order, as a read gives it."""
        return self._after(self.changes)

    @cached_property
    def trim(self) -> ChangeResult | None:
        """What the limit alone evicts at the next add; None with messages, and if nothing leaves.

        It holds no step, and is no change of its own: a read hides what the next add evicts.
        """
        stored = total(self.rows)
        evictions = over_limit(entries_of(self.rows), stored, self.policy)
        if self.changes or self.window.no_room or not evictions:
            return None
        places = {row.seq: row for row in self.rows}
        evicted = [
            EvictedMessage(*places[seq][:4], each.reason, _seq(each.because))
            for each in evictions
            if (seq := _seq(each.entry)) is not None
        ]
        oldest = self.rows[: self.rows.index(places[evicted[-1].seq])]
        return ChangeResult(
            kind="policy",
            step=None,
            policy=self.policy,
            before=stored,
            after=self.totals,
            policy_before=self.policy,
            evicted=tuple(evicted),
            passed_pins=any(row.pinned for row in oldest),
        )

    def outlook(self, first: int = 0) -> Outlook:
        """Return what the changes from the position `first` on do to what the model sees."""
        past, changes = self.changes[:first], self.changes[first:]
        before = replace(self.window, rows=self._after(past)) if past else self.seen
        arrived = [each.seq for change in changes for each in change.arrived]
        known, kept = {*before.seqs, *arrived}, set(self.window.seqs)
        gone = {each.seq for change in past for each in change.evicted}
        told = known | kept | gone
        return Outlook(
            before=before.totals,
            after=self.totals,
            leaving=tuple(seq for seq in (*before.seqs, *arrived) if seq not in kept),
            hidden=tuple(row.seq for row in self.seen.over_limit if row.seq not in told),
            returning=tuple(seq for seq in self.window.seqs if seq not in known),
            no_room=self.window.no_room,
        )

    def _after(self, changes: Sequence[ChangeResult]) -> tuple[WindowPlace, ...]:
        """Return the window after the first changes, in order, as a read gives it."""
        gone = {each.seq for change in changes for each in change.evicted}
        rows = [row for row in self.rows if row.seq not in gone]
        for change in changes:
            for seq, type, has_calls, tokens, *_ in change.arrived:
                is_system = type is MessageType.SYSTEM
                at_head = is_system and self.policy.always_keep_system_message_first
                if seq not in gone:
                    at = 0 if at_head else len(rows)
                    rows.insert(at, WindowPlace(seq, type, has_calls, tokens))
        return view_of(self.seen.memory_id, self.seen.step, self.policy, rows).rows

    @cached_property
    def window(self) -> WindowView[WindowPlace]:
        """The resulting window, of which nothing is hidden."""
        return replace(self.seen, policy=self.policy, rows=self.remaining, over_limit=())

    @property
    def totals(self) -> Totals:
        return self.window.totals


def _seq(entry: Entry | None) -> int | None:
    key = entry.key if entry else None
    return key if isinstance(key, int) else None


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
    is_recounted = recorder.window.counted_by != counted_by
    rows = _recounted(recorder) if is_recounted else stored.places
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


def _recounted(recorder: Recorder) -> tuple[WindowPlace, ...]:
    return tuple(
        WindowPlace(each.seq, each.type, each.has_calls, each.tokens, pinned=each.pinned)
        for each in stay_entries(recorder.window)
    )
