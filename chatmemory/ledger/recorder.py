"""The recorder, which turns the changes of one conversation into rows.

Every change takes the same way: the core decides a `Transition`, its entries get numbers,
`rows_for` makes rows of it, and `PendingRows` writes them. A simulation does not call `flush`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from chatmemory.core.codec import message_to_json
from chatmemory.core.estimators import family_named
from chatmemory.core.eviction import Eviction, Reason
from chatmemory.core.messages import text_of
from chatmemory.core.policies import Policy, load_of
from chatmemory.core.transitions import Change, Transition, keep
from chatmemory.core.window import Entry, Totals, total
from chatmemory.ledger import flags
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage, NewMessage
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.entries import StayEntry, numbered, read_message, stay_entries
from chatmemory.ledger.ranks import appended_rank, head_rank
from chatmemory.ledger.redaction import redacted
from chatmemory.ledger.replacement import Replacement
from chatmemory.ledger.rows import PendingRows, Stamp, check_unicode, rows_for
from chatmemory.ledger.stored_window import stays_at, stored_window
from chatmemory.models import Memory, Message, Step


class Recorder:
    """A recorder of the changes of one conversation, one step per change.

    With `at`, the recorder starts from that past step; it is then for simulations and cannot be
    flushed. `results` are the changes so far, without those that changed nothing.
    """

    def __init__(self, memory: Memory, actor: str = "", at: Step | None = None) -> None:
        self.memory = memory
        self._is_past = at is not None
        if at is not None:
            _go_back(memory, at)
        self.window = stored_window(memory, stays_at(at) if at is not None else None)
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
        `update_messages`); the reasons of departures are then inferred, otherwise they are SET.
        """
        old = list(stay_entries(self.window.with_messages()))
        replacement = Replacement.of(old, transition, by_client)
        if replacement.changes_nothing:
            return self._unchanged(transition.change)
        positions = replacement.may_return(is_first=self._counters.last_seq == 0)
        returning = self._returning(positions, replacement.payloads)
        transition = replacement.numbered(self._counters, returning, self.memory.policy)
        arrived = self._arrived(transition)
        departed = [e.reason for e in transition.evictions if e.reason is not Reason.MOVED]
        is_add = by_client and len(arrived) == 1 and Reason.SET not in departed
        kind = Step.Kind.ADD if is_add else Step.Kind.SET
        result = self._step(transition, kind, is_reordered=True, by_client=by_client)
        flags.replaced(self.memory, self.window)
        return replace(result, seq=arrived[0].seq if len(arrived) == 1 else None)

    def set_policy(
        self, policy: Policy | None, estimator: str = "", note: str = ""
    ) -> ChangeResult | None:
        """Put a policy in force, as a step; recount the window if the estimator family changes.

        Without a policy the client decides, and `estimator` counts. The window must already be
        counted by the new family. The first policy of a conversation without steps is not a step,
        but part of its creation.
        """
        memory = self.memory
        estimator = policy.estimator if policy else estimator or memory.policy_estimator
        if policy == memory.policy and estimator == memory.policy_estimator:
            return None
        is_recounted = family_named(estimator) != family_named(memory.policy_estimator)
        is_first = memory.policy is None and memory.last_step == 0
        memory.policy, memory.policy_estimator = policy, estimator
        if is_first:
            memory.window_load = load_of(policy, self.window.totals)
            self._is_changed = True
            return None
        transition = self._recount() if is_recounted else keep(self.window, policy)
        return self._step(transition, Step.Kind.POLICY, note=note)

    def set_labels(self, labels: dict[str, str]) -> ChangeResult | None:
        """Change the labels, as a step; equal labels change nothing."""
        if labels == self.memory.labels:
            return None
        self.memory.labels = labels
        return self._step(keep(self.window, self.memory.policy), Step.Kind.LABELS)

    def redact(self, row: Message) -> ChangeResult | None:
        """Remove a message's text permanently; a second time changes nothing."""
        if row.redacted_step is not None:
            return None
        replacement = redacted(read_message(row), row.seq)
        row.text, row.payload = text_of(replacement), message_to_json(replacement)
        row.redacted_step = self._counters.last_step + 1
        row.save(update_fields=["text", "payload", "redacted_step"])
        transition = keep(self.window, self.memory.policy)
        return self._step(transition, Step.Kind.REDACT, seq=row.seq)

    def duplicate(self, seq: int) -> ChangeResult:
        """Return the result for a message that was sent again, which changes nothing."""
        return replace(self._unchanged(Change.ADD), seq=seq)

    def flush(self) -> bool:
        """Write everything that was recorded; return whether there was anything to write.

        Call it inside the transaction that locked the row.
        """
        assert not self._is_past, "a recorder of a past step cannot be flushed"
        if not self._is_changed:
            return False
        self._rows.write(self.memory)
        self.memory.updated_at = self._now
        self.memory.save(force_update=True)
        return True

    # Recording a change

    def _add(self, transition: Transition, sent: NewMessage | None) -> ChangeResult:
        transition = self._numbered(transition)
        (arrival,) = stay_entries(transition.arrivals)
        result = self._step(transition, Step.Kind.ADD, policy=transition.policy, sent=sent)
        evicted = {message.seq for message in result.evicted}
        flags.left(self.memory, evicted)
        if arrival.seq in evicted:
            self.memory.oversized_step = result.step
        elif not transition.at_head:
            flags.arrived(self.memory, arrival)
        return replace(result, seq=arrival.seq)

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
            policy=memory.policy,
            policy_before=memory.policy,
            arrivals=tuple(new),
            evictions=tuple(Eviction(entry, Reason.MOVED) for entry in old),
        )

    def _numbered(self, transition: Transition) -> Transition:
        """Return an add with the numbers of its message and its stay."""
        (arrival,) = transition.arrivals
        n = self._counters.last_stay + 1
        first = next(stay_entries(self.window), None) if transition.at_head else None
        rank = head_rank(first.rank) if first else appended_rank(n)
        entry = numbered(arrival, n, self._counters.last_seq + 1, rank)
        return transition.with_entries({arrival: entry})

    def _step(
        self,
        transition: Transition,
        kind: str,
        *,
        is_reordered: bool = False,
        policy: Policy | None = None,
        **stamped: Any,
    ) -> ChangeResult:
        """Apply a numbered transition, put `policy` in force and make the rows."""
        arrived = self._arrived(transition)
        transition.apply_to(self.window)
        before = self._counters
        after = before.after(transition, self.window)
        self._counters = after.reordered(self.window) if is_reordered else after
        memory = self.memory
        memory.policy = policy or memory.policy
        memory.window_count, memory.window_tokens = transition.after
        memory.window_load = load_of(memory.policy, transition.after)
        self._counters.put_into(memory)
        stamp = Stamp(memory, kind, self._actor, self._now, **stamped)
        self._rows.add(rows_for(transition, before, self._counters, stamp))
        self._is_changed = True
        result = ChangeResult(
            kind=str(kind),
            step=self._counters.last_step,
            policy=memory.policy,
            before=transition.before,
            after=transition.after,
            seq=stamp.seq,
            arrived=arrived,
            evicted=_evicted(transition),
        )
        self.results.append(result)
        return result

    def _unchanged(self, change: Change) -> ChangeResult:
        totals = self.window.totals
        return ChangeResult(str(change), None, self.memory.policy, totals, totals)

    def _arrived(self, transition: Transition) -> tuple[ArrivedMessage, ...]:
        """Return the messages that enter the window, without those that only change position."""
        moved = {e.seq for e in stay_entries(_ending(transition, Reason.MOVED))}
        return tuple(
            ArrivedMessage(
                seq=entry.seq,
                type=entry.type,
                has_calls=entry.has_calls,
                tokens=entry.tokens,
                origin=entry.origin,
                is_new=entry.seq > self._counters.last_seq,
            )
            for entry in self._counters.entering(transition)
            if entry.seq not in moved
        )

    def _returning(self, positions: Collection[int], payloads: Sequence[str]) -> dict[int, int]:
        """Return the seq of each position whose message is in the history, outside the window.

        Of several equal messages the latest is used first, and each only once.
        """
        wanted = {payloads[j] for j in positions}
        for payload in wanted:
            check_unicode(payload)
        if not wanted:
            return {}
        in_window = {entry.seq for entry in stay_entries(self.window)}
        left: dict[str, list[int]] = defaultdict(list)
        rows = Message.objects.filter(memory=self.memory, payload__in=wanted).order_by("seq")
        for payload, seq in rows.values_list("payload", "seq"):
            if seq not in in_window:
                left[payload].append(seq)
        returning = {}
        for position in sorted(positions, reverse=True):
            if left[payloads[position]]:
                returning[position] = left[payloads[position]].pop()
        return returning


def _ending(transition: Transition, reason: Reason) -> list[Entry]:
    return [eviction.entry for eviction in transition.evictions if eviction.reason is reason]


def _evicted(transition: Transition) -> tuple[EvictedMessage, ...]:
    """Return the messages that leave the window, in order."""
    return tuple(
        EvictedMessage(
            seq=entry.seq,
            type=entry.type,
            has_calls=entry.has_calls,
            tokens=entry.tokens,
            reason=eviction.reason,
            because_seq=_seq(eviction.because),
        )
        for eviction in transition.evictions
        if eviction.reason is not Reason.MOVED
        for entry in stay_entries([eviction.entry])
    )


def _seq(entry: Entry | None) -> int | None:
    return entry.seq if isinstance(entry, StayEntry) else None


def _go_back(memory: Memory, step: Step) -> None:
    """Set an unsaved row to the state after a past step. Do not save the row."""
    memory.policy, memory.policy_estimator = step.policy, step.policy_estimator
    memory.window_count, memory.window_tokens = step.count_after, step.tokens_after
    Counters.at(step, memory.ordered_from).put_into(memory)
