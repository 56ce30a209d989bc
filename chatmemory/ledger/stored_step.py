"""Verifies a stored step, such as an add. The functions that decide a new step decide the stored
step again, and the result must equal the stored rows.

The step's row does not say everything, such as the position of a summary. The rest follows from the
stays that the step began or ended.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from chatmemory.contradictions import Contradicted, expect, stay_name
from chatmemory.exceptions import NoRoomBesidePins, NotCompactable
from chatmemory.ledger.index_verification import left_for, made_again
from chatmemory.ledger.numbers import appended_rank, head_rank
from chatmemory.messages.estimators import TokenCountEstimator
from chatmemory.models import Memory, Step
from chatmemory.recall.index import CHOSEN, INDEXED, NOTE
from chatmemory.windows.clearing import old_results
from chatmemory.windows.compaction import compact
from chatmemory.windows.eviction import FOR_ROOM, Eviction, Head, Reason
from chatmemory.windows.policies import Policy, TurnWindow
from chatmemory.windows.stored_policies import UnavailablePolicy, can_decide
from chatmemory.windows.transitions import (
    Transition,
    admit,
    admit_beside_pins,
    clear,
    recovered,
    refill,
    set_pinned,
    unchanged,
)
from chatmemory.windows.window import Entry, Window

PINNING = (Step.Kind.PIN, Step.Kind.UNPIN)
DECIDED = (
    *(Step.Kind.ADD, Step.Kind.SET, Step.Kind.CLEAR, Step.Kind.COMPACT, Step.Kind.CLEAR_RESULTS),
    *(*PINNING, Step.Kind.INDEX),
)


class End(NamedTuple):
    """The end of a stay. `entry` is the stay as an entry of the window, and `reason` says why the
    stay ended.
    """

    entry: Entry
    reason: str


Ends = Mapping[int, End]  # by the number of the stay


@dataclass(frozen=True)
class StoredStep:
    """A step of the ledger, with everything that is needed to decide the step again.

    - `window`, `policy_before`: the window and the policy before the step.
    - `policy`: the policy after the step. A policy is None if the client decides what is in the
      window.
    - `estimator`: the estimator after the step, or None if its name is unknown.
    - `arrived`: the entries of the stays that the step began.
    - `left`: the ends of the stays that the step ended, by the number of the stay.
    - `before`: up to two previous steps, the newest first, each with the ends of the stays that it
      ended.

    To save RAM, most entries have no message. Only the entries of system messages, AI messages with
    tool calls, index messages and tool results have their message. A tool result has a placeholder
    instead of its text.
    """

    memory: Memory
    step: Step
    window: Window  # before the step
    policy_before: Policy | None
    policy: Policy | None
    estimator: TokenCountEstimator | None
    arrived: Sequence[Entry]  # of the stays that began
    left: Ends
    before: Sequence[tuple[Step, Ends]]  # the last two steps, newest first

    def decided(self) -> Transition:
        """Return the transition that the rules decide for this step. For a step that no rule
        decides, such as a client's step or a repair, return the stored transition.

        Raises Contradicted if the stored rows differ from the decision. For a turn window, rows
        that fit the rules of earlier versions are accepted, too.

        Raises OversizedMessage or NoRoomBesidePins if the policy rejects the message that the step
        added.
        """
        try:
            return self._decided_now()
        except Contradicted:
            policies = self.policy_before, self.policy
            if not any(isinstance(policy, TurnWindow) for policy in policies):
                raise
            before, policy = map(_earlier, policies)
            earlier = replace(self, policy_before=before, policy=policy)
            return earlier._decided_now()._replace(policy=self.policy)

    def _decided_now(self) -> Transition:
        if not self._can_decide():
            return self._stored()
        match self.step.kind:
            case Step.Kind.ADD:
                return self._decided_add()
            case Step.Kind.SET:
                return self._decided_set()
            case Step.Kind.CLEAR:
                transition = clear(self.window, self.policy)
                self._compare(transition.evictions, self.left)
                return transition
            case Step.Kind.COMPACT:
                return self._decided_compaction()
            case Step.Kind.CLEAR_RESULTS:
                return self._decided_clearing()
            case Step.Kind.INDEX:
                return self._decided_index()
        return self._decided_pin()

    def _can_decide(self) -> bool:
        """Return whether an installed policy, and no client, decided the step."""
        if self.step.by_client or self.step.kind not in DECIDED:
            return False
        policies = (self.policy_before, self.policy)
        is_decided_by_policy = self.step.kind in (Step.Kind.ADD, Step.Kind.SET)
        return not (
            is_decided_by_policy and any(isinstance(p, UnavailablePolicy) for p in policies)
        )

    def _stored(self) -> Transition:
        """Return the transition as it is stored, from the stays of the step."""
        if not self.arrived and not self.left:
            return unchanged(self.window, self.policy)
        return refill(self.window, self._remaining(self.left), None)

    def _decided_add(self) -> Transition:
        policy = self.policy
        if len(self.arrived) != 1 or policy is None or self.policy_before is None:
            raise Contradicted(self.step, f"adds {len(self.arrived)} messages under {policy}")
        (arrival,) = self.arrived
        arguments = self.window, arrival, self.policy_before, lambda: policy
        try:
            transition = admit(*arguments)
        except NoRoomBesidePins:
            if arrival.n not in self.left:
                raise
            transition = admit_beside_pins(*arguments)
        if transition.ignored:
            raise Contradicted(self.step, f"adds #{arrival.seq}, which the policy ignores")
        first = next(iter(self.window), None) if transition.at_head else None
        rank = head_rank(first.rank) if first else appended_rank(arrival.n)
        expect(stay_name(arrival.n, arrival.seq), "rank", arrival.rank, rank)
        self._compare(transition.evictions, self.left)
        return transition

    def _decided_set(self) -> Transition:
        """Restore the list before it was trimmed, and trim the list again."""
        for n, (entry, reason) in self.left.items():
            if reason not in (*FOR_ROOM, Reason.SET, Reason.MOVED):
                what = f"left a set list for the reason {reason}"
                raise Contradicted(stay_name(n, entry.seq), what)
        trimmed = {n: end for n, end in self.left.items() if end.reason in FOR_ROOM}
        entries = self._remaining(self.left.keys() - trimmed.keys())
        transition = refill(self.window, entries, self.policy)
        self._compare(transition.evictions, trimmed)
        return transition

    def _decided_pin(self) -> Transition:
        """Pin or unpin the message again. The new stays must have the ranks of the stays that
        ended.
        """
        chosen = next((each for each in self.window if each.seq == self.step.seq), None)
        if chosen is None:
            raise Contradicted(self.step, f"pins #{self.step.seq}, which was not in memory")
        transition = set_pinned(self.window, chosen, self.policy, self.step.kind == Step.Kind.PIN)
        moved = {eviction.entry for eviction in transition.evictions}
        seqs = {entry.seq for entry in moved}
        begun = [each for each in transition.arrivals if each.seq in seqs]
        expected = [(each.seq, each.rank, each.pinned) for each in begun]
        found = [(each.seq, each.rank, each.pinned) for each in self.arrived]
        expect(self.step, "what it pins or unpins", found, expected)
        self._compare(transition.evictions, self.left)
        return self._stored()

    def _decided_compaction(self) -> Transition:
        """Replace the messages that left by the summary again. The summary must have the rank of
        the first of them.
        """
        if len(self.arrived) != 1 or self.arrived[0].seq != self.step.seq or len(self.left) < 2:
            raise Contradicted(self.step, f"replaces {len(self.left)} messages by #{self.step.seq}")
        (summary,) = self.arrived
        covered = [end.entry for end in self.left.values()]
        found, expected = (summary.rank, summary.pinned), (min(each.rank for each in covered), True)
        expect(stay_name(summary.n, summary.seq), "rank and pin", found, expected)
        try:
            transition = compact(self.window, covered, summary, self.policy)
        except NotCompactable as error:
            raise Contradicted(self.step, str(error)) from error
        self._compare(transition.evictions, self.left)
        return transition

    def _decided_clearing(self) -> Transition:
        """Clear the tool results again that became placeholders. The placeholders must have the
        ranks of the results.

        Two rules are tried: if the step made room for a new tool result, that result is one of the
        newest, which stay whole.
        """
        policy = self.policy
        keep = policy.whole_results if policy else 0
        remaining, _ = recovered(list(self.window), policy)
        for entries, kept in ((remaining, keep), (self.window, keep - 1)):
            old = old_results(entries, kept) if keep else ()
            if {entry.key for entry in old} == self.left.keys():
                break
        self._compare((Eviction(entry, Reason.STUBBED) for entry in old), self.left)
        expected = sorted((each.seq, each.rank, True) for each in old)
        found = sorted((each.seq, each.rank, each.is_stub) for each in self.arrived)
        expect(self.step, "the stubs", found, expected)
        return self._stored()

    def _decided_index(self) -> Transition:
        """Check a step that renewed the index: what left and what came. An index that was made by
        the current rule is also computed again.
        """
        if len(self.arrived) > 1 or len(self.left) > 1 or not (self.arrived or self.left):
            what = f"replaces {len(self.left)} messages by {len(self.arrived)}"
            raise Contradicted(self.step, what)
        for n, (entry, reason) in self.left.items():
            expect(stay_name(n, entry.seq), "reason", reason, Reason.INDEXED)
            expect(stay_name(n, entry.seq), "pinned", entry.pinned, True)
        for entry in self.arrived:
            expect(stay_name(entry.n, entry.seq), "pinned", entry.pinned, True)
            expect(self.step, "seq", self.step.seq, entry.seq)
            if self.step.note in (NOTE, CHOSEN):
                self._check_index(entry)
        return self._stored()

    def _check_index(self, entry: Entry) -> None:
        """Compute an index message again. Raises Contradicted if the stored message differs."""
        if not self.estimator or not can_decide(self.policy):
            return
        is_chosen = self.step.note == CHOSEN
        before = [] if is_chosen else [(each.kind, _gone(ends)) for each, ends in self.before]
        left = left_for(entry, before)
        made = made_again(
            self.memory,
            self.window,
            left,
            entry,
            self.policy,
            self.estimator,
            is_chosen=is_chosen,
        )
        if made is not None:
            place = self._remaining(self.left).index(entry)
            expect(stay_name(entry.n, entry.seq), "place", place, made.place)
            self._compare(made.evictions, self.left)

    def _remaining(self, gone: Container[int]) -> list[Entry]:
        """Return the window and the arrivals, sorted by rank, without the stays in `gone`."""
        entries = (*self.window, *self.arrived)
        return sorted((each for each in entries if each.n not in gone), key=attrgetter("rank"))

    def _compare(self, evictions: Iterable[Eviction], left: Mapping[int, End]) -> None:
        """Raise Contradicted for the first stay whose end is not as it was decided."""
        decided = {eviction.entry.n: End(eviction.entry, eviction.reason) for eviction in evictions}
        for n in sorted(decided.keys() | left.keys()):
            expected, found = decided.get(n), left.get(n)
            if expected is None or found is None or expected.reason != found.reason:
                seq = (expected or left[n]).entry.seq
                what = (
                    f"at step {self.step.n} the replay has {_reason(expected)}, but "
                    f"{_reason(found)} is stored"
                )
                raise Contradicted(stay_name(n, seq), what)

    def check_pins(self) -> None:
        """Raise Contradicted if a stay that the step began has a wrong pin.

        If the step ended a message's previous stay for the reason MOVED, the new stay must be
        pinned exactly if the previous stay was. Every other new stay must have no pin.
        """
        moved = [end.entry for end in self.left.values() if end.reason == Reason.MOVED]
        pinned = {entry.seq for entry in moved if entry.pinned}
        for entry in self.arrived:
            expect(stay_name(entry.n, entry.seq), "pinned", entry.pinned, entry.seq in pinned)


class _EarlierTurns(TurnWindow):
    """A turn window by the rules of earlier versions. They could leave answers in memory after
    evicting their question.
    """

    def evict_partial_turn(self, head: Head) -> list[Eviction]:
        return Policy.evict_partial_turn(self, head)


def _earlier(policy: Policy | None) -> Policy | None:
    if not isinstance(policy, TurnWindow):
        return policy
    return _EarlierTurns(policy.limit, estimator=policy.estimator, **policy.options)


def _gone(ends: Mapping[int, End]) -> list[Entry]:
    """Return the messages that left in a step for reasons after which the index lists
    their terms.
    """
    return [end.entry for end in ends.values() if end.reason in INDEXED]


def _reason(end: End | None) -> str:
    return end.reason if end else "no departure"
