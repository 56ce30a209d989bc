"""The recorder: turns the changes of one conversation into rows.

Each change goes through the same stages. A `Transition` is decided, and its entries get numbers.
The counters are updated, and the rows are built. The caller gets a `ChangeResult`. All rows are
written together at the end. A simulation is a recorder that writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from chatmemory.columns import redacted_columns
from chatmemory.exceptions import NotCompactable
from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep, NewMessage
from chatmemory.ledger.changes import ChangeResult, totals_before
from chatmemory.ledger.client_list import Replacement
from chatmemory.ledger.numbers import (
    count_change,
    go_back,
    numbered,
    numbered_add,
    rank_of_summary,
)
from chatmemory.ledger.overrides import erased, overriding_text
from chatmemory.ledger.pending import PendingRows
from chatmemory.ledger.redaction import redacted
from chatmemory.ledger.validation import check_bounds
from chatmemory.ledger.windows import read_message, stays_at, stored_window
from chatmemory.messages.codec import attributes_beside, frame_of
from chatmemory.messages.estimators import count_tokens, estimator_for, family_named
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.recall.index import Left, chosen, given_way, index_of, indexed, is_for_index
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.lists import appended
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, load_of, total_under
from chatmemory.windows.transitions import Change, Transition, set_pinned, totals_under, unchanged
from chatmemory.windows.window import NOTHING, Entry, Totals, Window


def is_unchanged(memory: Memory, before: Memory) -> bool:
    """Return whether a conversation is the same as when its row `before` was read.

    More than the number of the last step is compared, because a conversation can be deleted and
    created again.
    """
    return (memory.created_at, memory.last_step) == (before.created_at, before.last_step)


# Long: every change of a conversation becomes a step here, and all share the window and the rows to
# write.
class Recorder:
    """Records the changes of one conversation, one step for each change.

    Arguments:

    - `actor`: who makes the changes. With None, the recorder only simulates changes, and makes no
      rows.
    - `at`: for a simulation, the step after which it starts; by default the newest step.
    - `is_new`: whether the conversation is created together with the changes.
    - `note`: the default note of the steps.
    - `window`: the window before the changes; by default the stored window.
    - `cursor`: the database cursor that reads the stored window.

    Attributes:

    - `policy`: the policy in force.
    - `results`: the results of the changes so far, without changes that had no effect.
    """

    def __init__(
        self,
        memory: Memory,
        actor: str | None = None,
        at: Step | None = None,
        is_new: bool = False,
        note: str = "",
        window: Window | None = None,
        cursor: CursorWrapper | None = None,
    ) -> None:
        self.memory = memory
        self.is_new = is_new
        self._note = note
        if at is not None:
            go_back(memory, at)
        self.policy = memory.policy
        if window is None:
            window = stored_window(memory, None if at is None else stays_at(at), cursor)
        self.window = window
        self.results: list[ChangeResult] = []
        self._actor = actor
        self._now: datetime = timezone.now()
        self._is_changed = False
        self._rows = PendingRows(memory)
        # After a recount: the entries that replaced those on which a transition was decided.
        self._recounted: dict[Entry, Entry] = {}

    # The kinds of changes

    def record(
        self,
        transition: Transition,
        sent: NewMessage | None = None,
        by_client: bool = False,
        note: str = "",
    ) -> ChangeResult:
        """Record a transition that was decided on the recorder's window, and put the transition's
        policy in force. Returns the result.

        `sent` is the added message, with its client id and time. With `by_client`, a client decided
        the change, not a policy. `note` is the note of the step.
        """
        if transition.ignored:
            return self._unchanged(transition.change)
        before = transition.policy_before
        if before is not self.policy and self.set_policy(before):
            transition = transition.with_entries(self._recounted)
        match transition.change:
            case Change.ADD:
                return self._then_indexed(self._add(transition, sent, by_client))
            case Change.SET:
                return self.replace(transition)
            case Change.COMPACT:
                return self._then_indexed(self._compact(transition, by_client, note))
            case Change.INDEX:
                return self._index(transition) or self._unchanged(transition.change)
            case Change.CLEAR_RESULTS:
                return self._clear_results(transition)
        return self._clear(transition)

    def replace(self, transition: Transition, by_client: bool = False) -> ChangeResult:
        """Record a whole new list as the window. Messages that remain in order keep their stays.

        With `by_client`, the list comes from a client that decides its window. If a single add
        turns the window into the list, this add is recorded. If the list replaces messages by a
        summary, a compaction is recorded first, as a separate step.
        """
        check_bounds(transition.after.count, size=0)  # before very long lists are compared
        old = self.window.with_messages()
        sent = Replacement.of(old, transition, by_client)
        replacement = sent.as_it_was(self.window)
        if replacement.changes_nothing:
            return self._unchanged(transition.change)
        compaction = sent.as_compaction(self.memory)
        # An added message is new, and counted as the client sent it
        add = None if compaction and sent.has_marked_summary else sent.as_add(self.memory)
        if add is not None:
            return self._add(add, by_client=True)
        if compaction is not None:
            result = self._compact(compaction, by_client=True)
            rest = self.replace(transition, by_client)
            return rest if rest.step is not None else result
        transition = replacement.numbered(self.memory, self.window)
        return self._step(transition, Step.Kind.SET, by_client=by_client)

    def append(self, entry: Entry) -> ChangeResult:
        """Record that a client appended this message to its list."""
        return self._add(appended(self.window, entry), by_client=True)

    def set_policy(
        self, policy: Policy | None, estimator: str = "", note: str = ""
    ) -> ChangeResult | None:
        """Put a policy in force, as a step. Returns None, without a step, if nothing changes, or
        for the first policy of a new conversation.

        - `policy`: None if the client decides what is in the window.
        - `estimator`: for `policy=None`, the name of the new estimator. By default, the current
          estimator stays.

        If the new estimator counts tokens differently, the caller must first count the window with
        the new estimator.
        """
        memory = self.memory
        estimator = policy.estimator if policy else estimator or memory.policy_estimator
        if policy == self.policy and estimator == memory.policy_estimator:
            self.policy = policy  # so that the same object need not be compared again
            return None
        is_recounted = family_named(estimator) != family_named(memory.policy_estimator)
        is_first = self.is_new and self.policy is None and memory.last_step == 0
        self.policy = memory.policy = policy
        memory.policy_estimator = estimator
        if is_first:
            memory.window_load = load_of(policy, totals_under(policy, self.window))
            self._is_changed = True
            return None
        transition = self._recount() if is_recounted else unchanged(self.window, policy)
        return self._step(transition, Step.Kind.POLICY, note=note)

    def set_labels(self, labels: dict[str, str]) -> ChangeResult | None:
        """Replace all labels, as a step. Returns None, without a step, if `labels` equals the
        current labels.
        """
        if labels == self.memory.labels:
            return None
        self.memory.labels = labels
        return self._step(unchanged(self.window, self.policy), Step.Kind.LABELS)

    def pin(self, entry: Entry, pinned: bool) -> ChangeResult:
        """Pin or unpin a message of the window. A tool call and its results are pinned together."""
        before, n = set(self.window), self.memory.last_stay
        transition = set_pinned(self.window, entry, self.policy, pinned)
        begun = [each for each in transition.arrivals if each not in before]
        transition = transition.with_entries(
            {each: numbered(each, n + i, each.seq, each.rank) for i, each in enumerate(begun, 1)}
        )
        kind = Step.Kind.PIN if pinned else Step.Kind.UNPIN
        return self._step(transition, kind, seq=entry.seq)

    def redact(self, row: Message) -> ChangeResult | None:
        """Erase the text of a message, as a step. This cannot be undone. Returns None if the
        message is already redacted.
        """
        if row.redacted_step is not None:
            return None
        return self._redact(row, redacted(read_message(row), row.seq))

    def redact_index(self, row: Message, seqs: Collection[int]) -> ChangeResult | None:
        """Remove terms from an index message, as a step: those terms that only the redacted
        messages `seqs` contained. Returns None if the index has no such term.

        `row` is the stored index message.
        """
        index = index_of(read_message(row))
        if index is None or index.without(seqs) == index:
            return None
        return self._redact(row, index.without(seqs).message())

    def _redact(self, row: Message, replacement: ChatMessage) -> ChangeResult:
        row.text, row.frame = text_of(replacement), frame_of(replacement)
        row.attributes = attributes_beside(replacement)
        row.redacted_step = self.memory.last_step + 1
        row.salt = None
        left = redacted_columns(Message, NewMessage(replacement))
        for name, value in left.items():
            setattr(row, name, value)
        row.save(update_fields=["text", "frame", "attributes", "redacted_step", "salt", *left])
        self._erase_overrides(row.seq)
        transition = unchanged(self.window, self.policy)
        return self._step(transition, Step.Kind.REDACT, seq=row.seq, redacted=row)

    def _erase_overrides(self, seq: int) -> None:
        stays = Stay.objects.filter(memory=self.memory, seq=seq, overrides__isnull=False)
        for n, overrides in stays.values_list("n", "overrides"):
            Stay.objects.filter(memory=self.memory, n=n).update(overrides=erased(overrides or ""))

    def repair(self, transition: Transition, note: str) -> ChangeResult:
        """Record the repair of a window, as one step. `note` says what was repaired."""
        return self._step(transition, Step.Kind.REPAIR, note=note)

    def duplicate(self, seq: int) -> ChangeResult:
        """Return the result for a message that was sent a second time. The result has the number
        `seq` of the stored message, and no step.
        """
        return replace(self._unchanged(Change.ADD), seq=seq)

    def write(self, cursor: CursorWrapper) -> bool:
        """Write all recorded changes. Returns whether there was anything to write.

        `cursor` is the cursor of the transaction that has locked the conversation's row.
        """
        assert self._actor is not None, "a simulated change cannot be written"
        if not self._is_changed:
            return False
        self.memory.updated_at = self._now
        self._rows.write(cursor)
        return True

    # Recording a change

    def _add(
        self, transition: Transition, sent: NewMessage | None = None, by_client: bool = False
    ) -> ChangeResult:
        """Record an add. With `by_client`, the policy in force stays the same."""
        if not by_client and transition.policy is not self.policy:
            self.policy = self.memory.policy = transition.policy
        transition = numbered_add(transition, self.memory, self.window)
        return self._step(transition, Step.Kind.ADD, sent=sent, by_client=by_client)

    def _compact(
        self, transition: Transition, by_client: bool = False, note: str = ""
    ) -> ChangeResult:
        """Record a compaction: a summary replaces messages."""
        memory = self.memory
        seq, n = memory.last_seq + 1, memory.last_stay + 1
        rank = rank_of_summary(transition, n)
        (summary,) = (each for each in transition.arrivals if not each.n)
        new = numbered(summary, n, seq, rank, Message.Origin.SYNTHETIC)
        transition = transition.with_entries({summary: new})
        return self._step(transition, Step.Kind.COMPACT, seq=seq, by_client=by_client, note=note)

    def _then_indexed(self, result: ChangeResult) -> ChangeResult:
        """Renew the index, as a separate step, if messages left in a change. Returns `result`, the
        result of the change.
        """
        policy = self.policy
        if result.by_client or not can_decide(policy) or not policy.indexed_terms:
            return result
        gone = [*self._cleared_before(result), *filter(is_for_index, result.evicted)]
        if gone:
            left = self._messages_of(gone)
            transition = indexed(self.window, left, policy, self._counted)
            if transition.change is Change.INDEX:
                self._index(transition)
        return result

    def _cleared_before(self, result: ChangeResult) -> Sequence[Eviction]:
        """Return the tool results that the step before an add cleared, to make room for
        that add.
        """
        before = self.results[-2] if len(self.results) > 1 else None
        is_before = before is not None and before.clears and before.step == (result.step or 0) - 1
        return before.evicted if before is not None and is_before else ()

    def _messages_of(self, gone: Sequence[Eviction]) -> list[Left]:
        """Return messages that left. A cleared tool result is returned with its text, not with its
        placeholder.
        """
        entries = [each.entry for each in gone]
        unread = [each for each in entries if each.message is None]
        known = {each: each for each in self.window.loaded(unread)} if unread else {}
        found = ((each, known.get(each, each).message) for each in entries)
        return [Left(message, each.seq) for each, message in found if message is not None]

    def _counted(self, message: ChatMessage) -> Entry:
        estimator = estimator_for(self.memory.policy_estimator)
        return Entry.of(message, count_tokens(estimator, message))

    def give_way(self) -> bool:
        """Remove the index from the window, as a step, to make room for another message. Returns
        False if there is no index.

        The index is the message that lists terms of evicted messages.
        """
        transition = given_way(self.window, self.policy)
        return transition.change is Change.INDEX and self._index(transition) is not None

    def leave_out(self, terms: Collection[str]) -> ChangeResult | None:
        """Replace the index by an index without these terms, as a step. The index is the message in
        memory that lists exact terms of evicted messages.

        `terms` must also have the terms that were left out earlier. Otherwise the new index can
        list them again.

        Returns None if the index cannot be replaced, for example because the window has no index.
        """
        transition = chosen(self.window, terms, self.policy, self._counted)
        return self._index(transition) if transition.change is Change.INDEX else None

    def _index(self, transition: Transition) -> ChangeResult | None:
        """Record a new index, or that the index leaves. Nothing changes if no rank is free for the
        index.
        """
        memory = self.memory
        seq, n = memory.last_seq + 1, memory.last_stay + 1
        new = [each for each in transition.arrivals if not each.n]
        if new:
            try:
                rank = rank_of_summary(transition, n)
            except NotCompactable:
                return None
            own = numbered(new[0], n, seq, rank, Message.Origin.SYNTHETIC)
            transition = transition.with_entries({new[0]: own})
        return self._step(transition, Step.Kind.INDEX, seq=seq if new else None)

    def _clear_results(self, transition: Transition) -> ChangeResult:
        """Record placeholders, which replace tool results. Each placeholder has the rank of its
        tool result.
        """
        stubs = dict[Entry, Entry]()
        for n, each in enumerate(transition.evictions, self.memory.last_stay + 1):
            result, stub = each.entry, each.because
            assert stub is not None
            assert stub.message is not None
            overrides = overriding_text(stub.message)
            stubs[stub] = numbered(stub, n, result.seq, result.rank, overrides=overrides)
        return self._step(transition.with_entries(stubs), Step.Kind.CLEAR_RESULTS)

    def _clear(self, transition: Transition) -> ChangeResult:
        if not transition.evictions:
            return self._unchanged(transition.change)
        return self._step(transition, Step.Kind.CLEAR)

    def _recount(self) -> Transition:
        """Return a transition that begins a new stay for each message of the window, with the same
        rank and new token counts.

        The tokens of a stored stay never change, so that the totals of past steps stay valid.
        """
        memory, n = self.memory, self.memory.last_stay
        old = list(self.window)
        new = [numbered(entry, n + i, entry.seq, entry.rank) for i, entry in enumerate(old, 1)]
        self._recounted = dict(zip(old, new, strict=True))
        return Transition(
            Change.SET,
            before=Totals(memory.window_count, memory.window_tokens),
            after=total_under(self.policy, old),
            policy=self.policy,
            policy_before=self.policy,
            arrivals=tuple(new),
            evictions=tuple(Eviction(entry, Reason.MOVED) for entry in old),
        )

    def _step(
        self,
        transition: Transition,
        kind: str,
        *,
        sent: NewMessage | None = None,
        by_client: bool = False,
        seq: int | None = None,
        note: str = "",
        redacted: Message | None = None,
    ) -> ChangeResult:
        """Apply a transition whose entries have numbers, and make its step.

        Arrivals that already have a stay get no new row. `sent` is the added message as the caller
        gave it. `seq` is the number of a redacted or pinned message.
        """
        memory, kind = self.memory, str(kind)
        last_seq, last_stay = memory.last_seq, memory.last_stay
        entering = [entry for entry in transition.arrivals if entry.n > last_stay]
        transition.apply_to(self.window)
        count_change(memory, transition, kind, entering, self.window)
        memory.window_load = load_of(self.policy, totals_under(self.policy, self.window))
        self._is_changed = True
        if self._actor is not None:
            new = [entry for entry in entering if entry.seq > last_seq]
            self._rows.keep(
                InsertedStep.of(
                    memory,
                    kind,
                    transition.before,
                    at=self._now,
                    actor=self._actor,
                    by_client=by_client,
                    seq=seq,
                    note=note or transition.note or self._note,
                ),
                [InsertedMessage.of(memory.id, entry, sent, self._now) for entry in new],
                [InsertedStay.of(memory.id, entry, memory.last_step) for entry in entering],
                {each.entry.n: str(each.reason) for each in transition.evictions},
                redacted,
            )
        result = self._result(transition, kind, entering, last_seq, seq, by_client)
        self.results.append(result)
        return result

    def _result(
        self,
        transition: Transition,
        kind: str,
        entering: Sequence[Entry],
        last_seq: int,
        seq: int | None,
        by_client: bool,
    ) -> ChangeResult:
        """Return the result of a change. Messages that were only moved are left out."""
        misfit, policy, after = transition.cannot_fit, self.policy, self.window.totals
        misfits = transition.arrivals[:1] if misfit else ()
        evicted = tuple(
            [
                each._replace(misfit=misfit) if each.entry in misfits else each
                for each in transition.evictions
                if each.reason is not Reason.MOVED
            ]
        )
        moved = {each.seq for each in transition.evictions if each.reason is Reason.MOVED}
        arrived = tuple([each for each in entering if each.seq not in moved])
        return ChangeResult(
            kind=kind,
            step=self.memory.last_step,
            policy=policy,
            before=totals_before(policy, transition.before, after, arrived, evicted),
            after=after,
            policy_before=transition.policy_before,
            seq=arrived[0].seq if len(arrived) == 1 else seq,
            arrived=arrived,
            evicted=evicted,
            pinned=transition.pinned if misfit else NOTHING,
            passed_pins=transition.pinned.count > 0,
            by_client=by_client,
            last_seq=last_seq,
        )

    def _unchanged(self, change: Change) -> ChangeResult:
        totals = self.window.totals
        return ChangeResult(str(change), None, self.policy, totals, totals)
