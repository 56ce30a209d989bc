"""The recorder, which turns the changes of one conversation into rows.

Every change takes the same way: the core decides a `Transition`, its entries get numbers,
`rows_for` makes rows of it, and `writes` says how they are written. A simulation does not ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from chatmemory.core.codec import frame_of
from chatmemory.core.estimators import family_named
from chatmemory.core.eviction import Eviction, Reason
from chatmemory.core.messages import MessageType, text_of
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import load_of
from chatmemory.core.transitions import Change, Transition, pin, unchanged
from chatmemory.core.window import NOTHING, Entry, Totals, Window, total
from chatmemory.ledger import chain, flags, statements
from chatmemory.ledger.bounds import check_bounds
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage, NewMessage
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.entries import (
    NumberedTransition,
    StayEntry,
    numbered,
    read_message,
    stay_entries,
)
from chatmemory.ledger.ranks import appended_rank, head_rank
from chatmemory.ledger.redaction import check_commitment, redacted
from chatmemory.ledger.replacement import Replacement
from chatmemory.ledger.returning import returning_messages
from chatmemory.ledger.rows import PendingRows, Stamp, rows_for
from chatmemory.ledger.stored_window import stays_at, stored_window
from chatmemory.ledger.writes import Write
from chatmemory.models import Memory, Message, Step

# The kinds of steps that a full window refuses. Lowering a limit and clearing always work.
BOUNDED = (Step.Kind.ADD, Step.Kind.SET, Step.Kind.PIN)


class Recorder:
    """A recorder of the changes of one conversation, one step per change.

    Without an actor it is for simulations: no rows are kept, and nothing of it can be written. With
    `at`, a simulation starts from that past step; with a `window`, it needs no database. A
    conversation `is_new` in the transaction that inserts it. `note` is that of all its steps.
    `policy` is the one in force. `results` are the changes so far, without those that changed
    nothing.
    """

    def __init__(
        self,
        memory: Memory,
        actor: str | None = None,
        at: Step | None = None,
        is_new: bool = False,
        note: str = "",
        window: Window | None = None,
    ) -> None:
        self.memory = memory
        self._is_new = is_new
        self._note = note
        if at is not None:
            _go_back(memory, at)
        self.policy = memory.policy
        if window is None:
            window = stored_window(memory, stays_at(at) if at is not None else None)
        self.window = window
        self.results: list[ChangeResult] = []
        self._actor = actor
        self._now: datetime = timezone.now()
        self._counters = Counters.of(memory)
        self._rows = PendingRows()
        self._is_changed = False
        # After a recount: the entries that replaced those on which a transition was decided.
        self._recounted: dict[Entry, Entry] = {}

    # The kinds of changes

    def record(self, transition: Transition, sent: NewMessage | None = None) -> ChangeResult:
        """Record a transition that was decided on `window`, and put its policy in force."""
        if transition.ignored:
            return self._unchanged(transition.change)
        if self.set_policy(transition.policy_before):
            transition = transition.with_entries(self._recounted)
        match transition.change:
            case Change.ADD:
                return self._add(transition, sent)
            case Change.SET:
                return self.replace(transition)
        return self._clear(transition)

    def replace(self, transition: Transition, by_client: bool = False) -> ChangeResult:
        """Record a whole new list. Messages that stay in order keep their stays.

        With `by_client` the list comes from a client that decides its window (the store's
        `update_messages`). It is an add if exactly one add explains it.
        """
        check_bounds(transition.after.count, size=0)  # before very long lists are compared
        old = list(stay_entries(self.window.with_messages()))
        sent = Replacement.of(old, transition, by_client)
        replacement = sent.as_it_was(self.window)
        if replacement.changes_nothing:
            return self._unchanged(transition.change)
        # What is added is new, and counted as it was sent
        add, payloads = sent.as_add(self.window), sent.written()
        if add is not None:
            del sent, replacement  # the rows let go of their payloads
            return self._add_by_client(add, old, payloads)
        returning = returning_messages(self.memory, replacement)
        replacement = replacement.as_they_left(returning, self.window)
        transition = replacement.numbered(self._counters, returning)
        written: dict[str, Any] = {"by_client": by_client, "payloads": payloads}
        del old, sent, replacement
        result = self._step(transition, Step.Kind.SET, is_reordered=True, **written)
        flags.replaced(self.memory, self.window)
        return result

    def set_policy(
        self, policy: Policy | None, estimator: str = "", note: str = ""
    ) -> ChangeResult | None:
        """Put a policy in force, as a step; recount the window if the estimator family changes.

        Without a policy the client decides, and `estimator` counts. The window must already be
        counted by the new family. The first policy of a new conversation is not a step, but part of
        its creation.
        """
        memory = self.memory
        estimator = policy.estimator if policy else estimator or memory.policy_estimator
        if policy == self.policy and estimator == memory.policy_estimator:
            return None
        is_recounted = family_named(estimator) != family_named(memory.policy_estimator)
        is_first = self._is_new and self.policy is None and memory.last_step == 0
        self.policy = memory.policy = policy
        memory.policy_estimator = estimator
        if is_first:
            memory.window_load = load_of(policy, self.window.totals)
            self._is_changed = True
            return None
        transition = self._recount() if is_recounted else unchanged(self.window, policy)
        return self._step(transition, Step.Kind.POLICY, note=note or self._note)

    def set_labels(self, labels: dict[str, str]) -> ChangeResult | None:
        """Change the labels, as a step; equal labels change nothing."""
        if labels == self.memory.labels:
            return None
        memory = self.memory
        memory.labels, memory.labels_salt = labels, chain.new_salt()
        commitment = chain.commitment_of_labels(labels, memory.labels_salt)
        transition = unchanged(self.window, self.policy)
        return self._step(transition, Step.Kind.LABELS, commitment=commitment)

    def pin(self, entry: StayEntry, pinned: bool) -> ChangeResult:
        """Pin or unpin a message of the window, with what belongs to it: a call and its results."""
        before, n = set(self.window), self._counters.last_stay
        transition = pin(self.window, entry, self.policy, pinned)
        begun = [each for each in stay_entries(transition.arrivals) if each not in before]
        transition = transition.with_entries(
            {each: numbered(each, n + i, each.seq, each.rank) for i, each in enumerate(begun, 1)}
        )
        kind = Step.Kind.PIN if pinned else Step.Kind.UNPIN
        return self._step(transition, kind, seq=entry.seq)

    def redact(self, row: Message) -> ChangeResult | None:
        """Remove a message's text permanently; a second time changes nothing.

        Raises CorruptRow for a message that was altered: its redaction would hide that.
        """
        if row.redacted_step is not None:
            return None
        check_commitment(row)
        replacement = redacted(read_message(row), row.seq)
        row.text, row.frame = text_of(replacement), frame_of(replacement)
        row.redacted_step = self._counters.last_step + 1
        row.salt = None
        row.save(update_fields=["text", "frame", "redacted_step", "salt"])
        transition = unchanged(self.window, self.policy)
        commitment = chain.commitment_of(row)
        return self._step(transition, Step.Kind.REDACT, seq=row.seq, commitment=commitment)

    def duplicate(self, seq: int) -> ChangeResult:
        """Return the result for a message that was sent again, which changes nothing."""
        return replace(self._unchanged(Change.ADD), seq=seq)

    def writes(self) -> list[Write]:
        """Return what writes everything that was recorded; nothing if nothing was.

        It is to be executed inside a transaction that has locked the row.
        """
        assert self._actor is not None, "what was simulated cannot be written"
        if not self._is_changed:
            return []
        self.memory.updated_at = self._now
        return [*self._rows.writes(self.memory), statements.change(self.memory)]

    # Recording a change

    def _add(self, transition: Transition, sent: NewMessage | None) -> ChangeResult:
        transition = self._numbered(transition)
        (arrival,) = stay_entries(transition.arrivals)
        if transition.policy != self.policy:
            self.policy = self.memory.policy = transition.policy
        result = self._step(transition, Step.Kind.ADD, sent=sent)
        evicted = {each.seq for each in result.evicted}
        was_dangling = self.memory.dangling_call is not None
        flags.left(self.memory, evicted)
        flags.added(self.memory, transition, self._counters.last_step)
        if arrival.seq not in evicted and not transition.at_head:
            flags.arrived(self.memory, arrival)
        if _is_torn(transition, self.window, was_dangling):
            flags.replaced(self.memory, self.window.with_messages())
        return result

    def _add_by_client(
        self, transition: Transition, old: Sequence[StayEntry], payloads: dict[int, str]
    ) -> ChangeResult:
        """Record an add that was inferred from a client's list; `old` are the loaded entries."""
        transition = self._numbered(transition)
        result = self._step(transition, Step.Kind.ADD, by_client=True, payloads=payloads)
        loaded: dict[Entry, StayEntry] = {entry: entry for entry in old}
        flags.replaced(self.memory, (loaded.get(entry, entry) for entry in self.window))
        return result

    def _clear(self, transition: Transition) -> ChangeResult:
        if not transition.evictions:
            return self._unchanged(transition.change)
        result = self._step(transition, Step.Kind.CLEAR)
        flags.replaced(self.memory, ())
        return result

    def _recount(self) -> Transition:
        """Return a transition that ends every stay and begins a new one with the same rank.

        The tokens of a stay are never changed, so that the totals of past steps stay valid.
        """
        memory, n = self.memory, self._counters.last_stay
        old = list(stay_entries(self.window))
        new = [numbered(entry, n + i, entry.seq, entry.rank) for i, entry in enumerate(old, 1)]
        self._recounted = dict(zip(old, new, strict=True))
        return Transition(
            Change.SET,
            before=Totals(memory.window_count, memory.window_tokens),
            after=total(old),
            policy=self.policy,
            policy_before=self.policy,
            arrivals=tuple(new),
            evictions=tuple(Eviction(entry, Reason.MOVED) for entry in old),
        )

    def _numbered(self, transition: Transition) -> Transition:
        """Return an add with the numbers of the rows for its arrival, if it has one."""
        n, seq = self._counters.last_stay + 1, self._counters.last_seq + 1
        first = next(stay_entries(self.window), None) if transition.at_head else None
        rank = head_rank(first.rank) if first else appended_rank(n)
        return transition.with_entries(
            {arrival: numbered(arrival, n, seq, rank) for arrival in transition.arrivals}
        )

    def _step(
        self, transition: Transition, kind: str, *, is_reordered: bool = False, **stamped: Any
    ) -> ChangeResult:
        """Apply a transition whose entries are numbered, and make its rows."""
        memory, before = self.memory, self._counters
        change = NumberedTransition.of(transition, before.last_stay)
        transition.apply_to(self.window)
        after = before.after(change, self.window)
        self._counters = after.reordered(self.window) if is_reordered else after
        self._counters.put_into(memory)
        memory.window_count, memory.window_tokens = transition.after
        memory.window_size += sum(entry.size for entry in change.entering)
        memory.window_size -= sum(leaving.entry.size for leaving in change.leaving)
        if kind in BOUNDED:
            check_bounds(memory.window_count, memory.window_size)
        memory.window_load = load_of(self.policy, transition.after)
        stamped.setdefault("note", self._note)
        stamp = Stamp(memory, kind, self._actor or "", self._now, **stamped)
        rows = rows_for(change, before, self._counters, stamp)
        if self._actor is not None:
            self._rows.add(rows)
        memory.head = rows.step.digest
        self._is_changed = True
        result = result_of(change, rows.step, before.last_seq, self.policy)
        self.results.append(result)
        return result

    def _unchanged(self, change: Change) -> ChangeResult:
        totals = self.window.totals
        return ChangeResult(str(change), None, self.policy, totals, totals)


def result_of(
    change: NumberedTransition, step: Step, last_seq: int, policy: Policy | None
) -> ChangeResult:
    """Return what callers are told, without messages that only change position."""
    moved = {leaving.entry.seq for leaving in change.leaving if leaving.reason is Reason.MOVED}
    misfit = change.transition.cannot_fit
    own = change.transition.arrivals[0] if misfit else None
    arrived = tuple(
        ArrivedMessage(
            *(entry.seq, entry.type, entry.has_calls, entry.tokens),
            *(entry.origin, entry.seq > last_seq),
        )
        for entry in change.entering
        if entry.seq not in moved
    )
    evicted = tuple(
        EvictedMessage(
            *(entry.seq, entry.type, entry.has_calls, entry.tokens),
            *(reason, because, misfit if entry == own else None),
        )
        for entry, reason, because in change.leaving
        if reason is not Reason.MOVED
    )
    return ChangeResult(
        kind=str(step.kind),
        step=step.n,
        policy=policy,
        before=change.transition.before,
        after=change.transition.after,
        policy_before=change.transition.policy_before,
        seq=arrived[0].seq if len(arrived) == 1 else step.seq,
        arrived=arrived,
        evicted=evicted,
        pinned=change.transition.pinned if misfit else NOTHING,
        passed_pins=change.transition.pinned.count > 0,
        by_client=step.by_client,
    )


def _go_back(memory: Memory, step: Step) -> None:
    """Set an unsaved row to the state after a past step. Do not save the row."""
    memory.policy, memory.policy_estimator = step.policy, step.policy_estimator
    memory.window_count, memory.window_tokens = step.count_after, step.tokens_after
    memory.window_size = stays_at(step).aggregate(size=Sum("size", default=0))["size"]
    Counters.at(step, memory.ordered_from).put_into(memory)


def _is_torn(transition: Transition, window: Window, was_dangling: bool) -> bool:
    """Return whether a tool call that stays may have lost results, or what stood before them.

    What leaves is the oldest, except behind a pinned call, and where a system message is replaced.
    Only results that leave can make a call dangle that did not.
    """
    evictions = transition.evictions
    if was_dangling and any(each.reason is Reason.REPLACED for each in evictions):
        return True
    passed = islice((each for each in window if each.pinned), transition.pinned.count)
    if not evictions or not any(each.has_calls for each in passed):
        return False
    return was_dangling or any(
        each.entry.type is MessageType.TOOL_EXECUTION_RESULT for each in evictions
    )
