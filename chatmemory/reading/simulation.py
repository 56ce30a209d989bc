"""Simulates adds, another policy or a pin, now or at an earlier step. Nothing is written.

A simulation uses the same `Recorder` as real changes (see `ledger.recorder`). A message that
somebody tries on a page is a draft. Drafts are numbered -1, -2, and so on, because a real message
may take the next seq.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import takewhile

from chatmemory.exceptions import LongRecount, PolicyRequired
from chatmemory.ledger.adding import add_all, change_policy, required_policy
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.validation import storable_additions
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.models import Memory
from chatmemory.reading.indexes import IndexInMemory
from chatmemory.reading.windows import (
    MessageView,
    NoRoom,
    StoredState,
    WindowView,
    view_of,
    with_tool_messages,
)
from chatmemory.recall.index import index_of
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Change
from chatmemory.windows.window import NOTHING, Totals
from chatmemory.windows.written_policies import checked_policy

RECOUNTED_AT_ONCE = 5_000  # messages: these take a second to count


@dataclass(frozen=True)
class Outlook:
    """How simulated changes alter what the model sees: the totals `before` and `after`, and the
    seqs of messages.

    - `leaving`: messages that the model no longer sees, including simulated messages.
    - `returning`: messages that the model sees again.
    - `hidden`: messages that were already hidden before the changes, such as by a lowered limit.
      The next add evicts them.
    - `no_room`: why every add is refused; None if adds succeed. If adds are refused, the hidden
      messages stay in memory.
    - `stubbed`: tool results whose text becomes a placeholder.
    - `to_clear`: tool results whose text becomes a placeholder at the next add.
    """

    before: Totals = NOTHING
    after: Totals = NOTHING
    leaving: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    returning: tuple[int, ...] = ()
    no_room: NoRoom | None = None
    stubbed: tuple[int, ...] = ()
    to_clear: tuple[int, ...] = ()


NO_OUTLOOK = Outlook()


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation: one change for each added message, and the `window` after the
    last change.

    - `since`: the index in `changes` of the first change that `outlook` describes. `window_before`
      is the window before this change.
    - `trim`: the change in which a lowered limit evicts messages. The ledger records it with the
      next add. None if the simulation added messages, or if nothing leaves.
    - `stubbed`: the seqs of the tool results whose text became a placeholder.
    - `index`: the new index of exact terms, or None. `renewed` are the seqs of the index messages
      that the new index replaced.

    The added messages are numbered with the next seqs, or, if they are drafts, with -1, -2, and so
    on. Their `entered_step` is 0.
    """

    changes: tuple[ChangeResult, ...]
    window_before: WindowView
    window: WindowView
    policy: Policy
    trim: ChangeResult | None = None
    since: int = 0
    stubbed: tuple[int, ...] = ()
    index: IndexInMemory | None = None
    renewed: frozenset[int] = frozenset()

    @property
    def totals(self) -> Totals:
        return self.window.totals

    def outlook(self) -> Outlook:
        """Return how the changes from index `since` on alter what the model sees."""
        arrived = [each.seq for change in self.changes[self.since :] for each in change.arrived]
        known, kept = {*self.window_before.seqs, *arrived}, {*self.window.seqs, *self.renewed}
        known |= {self.index.seq} if self.index else set()
        return Outlook(
            before=self.window_before.totals,
            after=self.totals,
            leaving=tuple(seq for seq in (*self.window_before.seqs, *arrived) if seq not in kept),
            hidden=tuple(
                row.seq
                for row in self.window_before.in_order
                if row.seq in self.window_before.hidden and row.seq not in kept
            ),
            returning=tuple(seq for seq in self.window.seqs if seq not in known),
            no_room=self.window.no_room,
            stubbed=tuple(seq for seq in self.stubbed if seq in kept),
            to_clear=self.window.next_to_clear(self.stubbed),
        )


@one_snapshot()
def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
    recount: bool = True,
) -> Simulation:
    """Return the result of adding messages, now or at step `at`. `policy` is by default the policy
    in force.

    If `policy` counts tokens differently than the policy in force, all messages in memory are
    counted again. With `recount=False`, LongRecount is raised instead if memory has more than 5,000
    messages.

    Raises MemoryNotFound, StepNotFound, PolicyUnavailable, LongRecount, MessageTooLarge,
    UnstorableText, and PolicyRequired if there is no policy.
    """
    return simulated(
        StoredState.of(memory_id, at), checked_policy(policy), messages, recount=recount
    )


def simulated(
    stored: StoredState,
    other: Policy | None,
    messages: Iterable[ChatMessage],
    *,
    recount: bool = True,
    since: int = 0,
    are_drafts: bool = False,
) -> Simulation:
    """Return the result of adding messages to a conversation that the caller has read. `other` is a
    policy to use instead of the policy in force, or None.

    `since` is the index of the first change that `outlook` describes. With `are_drafts`, the new
    messages are numbered -1, -2, and so on.
    """
    recorder = Recorder(copy(stored.memory), at=None if stored.at is None else stored.step)
    counted_by = recorder.window.counted_by
    if other is not None:
        if not recount:
            _check_recount(recorder.memory, other)
        change_policy(recorder, other)
    policy = _policy_in_force(stored, recorder)
    added = storable_additions(messages)
    is_recounted = recorder.window.counted_by != counted_by
    rows = stored.rows
    if is_recounted:
        rows = tuple(MessageView.of(entry, policy) for entry in recorder.window)
    rows = with_tool_messages(stored.memory.pk, rows, policy)
    changes = add_all(recorder, added)
    changes = _as_drafts(changes) if are_drafts else changes
    stubs = _stubs(recorder.results)
    shown = [each._replace(tokens=stubs.get(each.seq, each.tokens)) for each in rows]
    indexes = [each for each in recorder.results if each.kind == Change.INDEX]
    after = _after(stored, policy, shown, changes, indexes)
    return Simulation(
        changes=tuple(changes),
        window_before=_after(stored, policy, rows, changes[:since])
        if changes[:since]
        else stored.window,
        window=replace(after, over_limit=(), evictions=()),
        policy=policy,
        trim=None if changes or after.no_room else _trim(after),
        since=since,
        stubbed=tuple(stubs),
        index=_index_of(indexes[-1:]),
        renewed=frozenset(
            each.seq for change in indexes if change.only_replaces for each in change.evicted
        ),
    )


def _index_of(last: Iterable[ChangeResult]) -> IndexInMemory | None:
    """Return the index that a change brought into memory, or None. `last` has this change or
    nothing.
    """
    arrived = (each for change in last for each in change.arrived)
    found = ((each.seq, index_of(each.message)) for each in arrived)
    return next((IndexInMemory(seq, index) for seq, index in found if index), None)


def _policy_in_force(stored: StoredState, recorder: Recorder) -> Policy:
    """Return the policy of a simulation. Raises PolicyRequired."""
    memory_id, policy = stored.memory.pk, recorder.policy
    if policy is None and stored.at == 0 and stored.memory.policy is not None:
        raise PolicyRequired(
            f"the policy of {memory_id!r} at step 0 is not recorded: give a policy to try"
        )
    advice = "set a policy before simulating, or give a policy to try"
    return required_policy(memory_id, policy, advice)


def _check_recount(memory: Memory, policy: Policy) -> None:
    """Raise LongRecount if a policy needs very many messages counted again."""
    is_same = family_named(policy.estimator) == family_named(memory.policy_estimator)
    if not is_same and memory.window_count > RECOUNTED_AT_ONCE:
        raise LongRecount(policy.estimator, memory.window_count)


def _stubs(changes: Iterable[ChangeResult]) -> dict[int, int]:
    """Return the tokens of the placeholders that changes put in place of tool results, by seq."""
    cleared = [change for change in changes if change.clears]
    return {each.seq: each.tokens for change in cleared for each in change.arrived}


def _after(
    stored: StoredState,
    policy: Policy,
    before: Iterable[MessageView],
    changes: Sequence[ChangeResult],
    indexes: Sequence[ChangeResult] = (),
) -> WindowView:
    """Return the window as the model sees it, after adds and after the changes of the index. Faster
    than reading the recorder's window.
    """
    gone = {each.seq for change in (*changes, *indexes) for each in change.evicted}
    rows = [row for row in before if row.seq not in gone]
    for change in changes:
        for arrival in change.arrived:
            is_system = arrival.type is MessageType.SYSTEM
            at_head = is_system and policy.always_keep_system_message_first
            if arrival.seq not in gone:
                rows.insert(0 if at_head else len(rows), MessageView.of(arrival, policy))
    for index in (arrival for change in indexes[-1:] for arrival in change.arrived):
        is_led = bool(rows) and rows[0].type is MessageType.SYSTEM
        protected = takewhile(lambda row: row.pinned, rows[is_led:])
        rows.insert(is_led + sum(1 for _ in protected), MessageView.of(index, policy))
    return view_of(stored.window.step, policy, rows)


def _trim(window: WindowView) -> ChangeResult | None:
    """Return the change in which the limit evicts messages at the next add. None if nothing
    leaves.
    """
    if not window.evictions:
        return None
    last = window.evictions[-1].seq
    older = takewhile(lambda row: row.seq != last, window.in_order)
    return ChangeResult(
        kind="policy",
        step=None,
        policy=window.policy,
        before=window.stored,
        after=window.totals,
        policy_before=window.policy,
        evicted=window.evictions,
        passed_pins=any(row.pinned for row in older),
    )


def _as_drafts(changes: Sequence[ChangeResult]) -> list[ChangeResult]:
    """Return these adds with the new messages numbered -1, -2, and so on."""
    drafts = {
        arrival: replace(arrival, seq=-n)
        for n, change in enumerate(changes, 1)
        for arrival in change.arrived
    }
    numbers: dict[int | None, int] = {each.seq: draft.seq for each, draft in drafts.items()}
    return [
        replace(
            change,
            seq=numbers.get(change.seq, change.seq),
            arrived=tuple(map(drafts.__getitem__, change.arrived)),
            evicted=tuple(each.with_entries(drafts) for each in change.evicted),
        )
        for change in changes
    ]
