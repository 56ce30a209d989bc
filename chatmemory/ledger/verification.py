"""Verification: replay a conversation through the core, and compare the result with stored rows.

Steps, stays and messages are read once, in the order of the ledger, so that the first contradiction
is the first wrong row. Every step that a policy decided is decided again by the same functions, and
its evictions, reasons and totals are compared. Steps of a client (`by_client`) are only checked for
consistency. Only one window is in memory, without the messages that no decision needs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet

from chatmemory import database
from chatmemory.contradictions import (
    Contradicted,
    Contradiction,
    expect,
    expect_any,
    is_outage,
    naming,
    stay_name,
)
from chatmemory.exceptions import NoRoomBesidePins, NotCompactable, OversizedMessage
from chatmemory.ledger.deletions import check_hidden
from chatmemory.ledger.index_verification import left_for, made_again
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.numbers import appended_rank, head_rank
from chatmemory.ledger.overrides import is_erased, readings
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.windows import (
    shown_message,
    stay_entry,
    unprotected,
)
from chatmemory.messages.codec import frame_and_size
from chatmemory.messages.estimators import (
    TokenCountEstimator,
    count_tokens,
    estimator_for,
    is_known,
)
from chatmemory.messages.message import (
    ChatMessage,
    MessageType,
    ToolExecutionResultMessage,
    text_of,
)
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.recall.index import INDEXED, NOTE, is_index
from chatmemory.rooms import rooms
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import old_results, stub_of
from chatmemory.windows.compaction import compact
from chatmemory.windows.eviction import FOR_ROOM, Eviction, Head, Reason
from chatmemory.windows.policies import MessageWindow, Policy, TokenWindow, TurnWindow
from chatmemory.windows.stored_policies import UnavailablePolicy, can_decide, load_of
from chatmemory.windows.transitions import (
    Transition,
    admit,
    admit_beside_pins,
    clear,
    recovered,
    refill,
    set_pinned,
    totals_under,
    unchanged,
)
from chatmemory.windows.window import Entry, Totals, Window

BATCH = 500  # rows that are read at once
AT_ONCE = 4_000_000  # bytes of messages that are read at once

PINNING = (Step.Kind.PIN, Step.Kind.UNPIN)
DECIDED = (
    *(Step.Kind.ADD, Step.Kind.SET, Step.Kind.CLEAR, Step.Kind.COMPACT, Step.Kind.CLEAR_RESULTS),
    *(*PINNING, Step.Kind.INDEX),
)
# The kinds of steps that begin pinned stays
PROTECTING = (Step.Kind.COMPACT, *PINNING)
# The kinds of steps after which the order by number differs from the order by rank
ORDERING = (Step.Kind.SET, Step.Kind.REPAIR, Step.Kind.CLEAR_RESULTS, *PROTECTING)
ALWAYS_INSTALLED = (MessageWindow, TokenWindow, TurnWindow)

Row = TypeVar("Row", Step, Stay, Message)
Numbered = TypeVar("Numbered", Step, Stay)


def verify(memory_id: str) -> Contradiction | None:
    """Return the first row of a conversation that differs from the replay, or None.

    A row that cannot be read differs, too. Other writers may continue meanwhile. Raises
    MemoryNotFound, also for a conversation whose deletion has begun and was audited.
    """
    try:
        with one_snapshot(), naming("the conversation"):
            check_hidden(memory_id)
            memory = find_memory(memory_id)
            try:
                _Replay(memory, BATCH).run()
            except _UnreadableBatch:
                _Replay(memory, batch=1).run()
    except Contradicted as found:
        return Contradiction(memory_id, found.row, found.what)
    return None


class _UnreadableBatch(Contradicted):
    """A batch with an unreadable row. Drivers then refuse all of its rows: read them one by one."""


class _Rows:
    """The rows of a conversation in the order of its ledger, read in batches."""

    def __init__(self, memory: Memory, batch: int) -> None:
        self._memory = memory
        self._batch = batch

    def check_numbers(self) -> None:
        """Raise Contradicted for a row with a number that was never assigned."""
        memory = self._memory
        _check_numbers(Step.objects.filter(memory=memory), "n", memory.last_step)
        _check_numbers(Message.objects.filter(memory=memory), "seq", memory.last_seq)
        _check_numbers(Stay.objects.filter(memory=memory), "n", memory.last_stay)

    def steps(self) -> Iterator[Step]:
        for steps in self._batches(Step, self._memory.last_step):
            yield from steps

    def stays(self) -> Iterator[tuple[Stay, Message]]:
        """Yield the stays by number, each with its message."""
        for stays in self._batches(Stay, self._memory.last_stay):
            for part in database.parts_of({stay: stay.size for stay in stays}, AT_ONCE):
                messages = self._read(Message, "seq", [stay.seq for stay in part])
                for stay in part:
                    if stay.seq not in messages:
                        what = f"is missing, but stay {stay.n} is of it"
                        raise Contradicted(_name(Message, stay.seq), what)
                    yield stay, messages[stay.seq]

    def _batches(self, model: type[Numbered], last: int) -> Iterator[list[Numbered]]:
        """Yield the rows from number 1 to `last`, up to the first missing one."""
        for first in range(1, last + 1, self._batch):
            numbers = range(first, min(first + self._batch, last + 1))
            rows = self._read(model, "n", numbers)
            found = [rows[n] for n in takewhile(rows.__contains__, numbers)]
            yield found
            if len(found) < len(numbers):
                missing = _name(model, numbers[len(found)])
                raise Contradicted(missing, f"is missing; the counter is {last}")

    def _read(self, model: type[Row], number: str, numbers: Sequence[int]) -> dict[int, Row]:
        rows = model.objects.filter(memory=self._memory, **{f"{number}__in": numbers})
        try:
            return {getattr(row, number): row for row in rows}
        except Exception as error:
            if is_outage(error):
                raise
            if self._batch > 1:
                raise _UnreadableBatch(model, str(error)) from error
            raise Contradicted(_name(model, numbers[0]), f"cannot be read: {error}") from error


def _name(model: type[Step] | type[Stay] | type[Message], number: int) -> str:
    return f"message #{number}" if model is Message else f"{model._meta.model_name} {number}"


def _check_numbers(rows: QuerySet[Any], number: str, last: int) -> None:
    for row in rows.exclude(**{f"{number}__range": (1, last)}).order_by(number)[:1]:
        below, above = (
            "below the first, which has the number 1",
            f"above the counter, which is {last}",
        )
        raise Contradicted(row, f"is {below if getattr(row, number) < 1 else above}")


class _End(NamedTuple):
    """The end of a stay, and its reason."""

    entry: Entry
    reason: str


class _Replay:
    """A replay of one conversation. The attributes belong to the replayed step.

    Entries have their message only where a decision needs it: system messages, calls, and results
    without their contents.
    """

    def __init__(self, memory: Memory, batch: int) -> None:
        self.memory = memory
        self.rows = _Rows(memory, batch)
        self.stays = self.rows.stays()
        self.next_stay = next(self.stays, None)
        self.ends: dict[int, dict[int, _End]] = {}  # the ends of stays that were read, by step
        self.checks = [check for room in rooms() if (check := room.verifying(memory))]
        self.window = Window()
        self.last = Step(n=0, oldest=1)
        self.policy_before: Policy | None = None
        self.policy: Policy | None = None
        self.estimator: TokenCountEstimator | None = None
        self.arrived: list[Entry] = []
        self.left: dict[int, _End] = {}
        self.before: list[tuple[Step, dict[int, _End]]] = []  # the last two steps, newest first
        self.history = Totals()
        self.last_seq = self.last_stay = self.ordered_from = self.clears = self.summaries = 0

    def run(self) -> None:
        self.rows.check_numbers()
        for step in self.rows.steps():
            with naming(step):
                self.check_step(step)
            self.last = step
        self.check_end()

    def check_step(self, step: Step) -> None:
        self.policy_before, self.policy = self.policy, step.policy
        if step.n == 1:
            self.policy_before = self.policy
        name = step.policy_estimator
        self.estimator = estimator_for(name) if is_known(name) else None
        self.arrived = []
        for stay, row in self.begun_by(step):
            with naming(row):
                self.read_stay(step, stay, row)
            for check in self.checks:
                check.stay(stay)
        self.left = self.ends.pop(step.n, {})
        self.check_counters(step)
        try:
            self.replay(step)
        except (OversizedMessage, NoRoomBesidePins) as error:
            raise Contradicted(step, f"the policy refuses what it adds: {error}") from error
        ended = [(n, self.left[n].reason) for n in sorted(self.left)]
        for check in self.checks:
            check.step(step, ended)
        self.before = [(step, self.left), *self.before[:1]]

    # Rows

    def begun_by(self, step: Step) -> Iterator[tuple[Stay, Message]]:
        """Yield the stays that a step began, each with its message."""
        while self.next_stay and self.next_stay[0].entered_step <= step.n:
            yield self.next_stay
            self.next_stay = next(self.stays, None)

    def read_stay(self, step: Step, stay: Stay, row: Message) -> None:
        """Check a stay, and its message if the message is new."""
        message, is_new = shown_message(row, stay.overrides), stay.seq > self.last_seq
        if is_new:
            self.check_message(stay, row, message)
        self.check_stay(step, stay, row, message)
        if is_new:
            expect(row, "tokens", row.tokens, stay.tokens)
        entry = stay_entry(stay, _needed_of(message))
        self.arrived.append(entry)
        if stay.left_step is not None:
            self.ends.setdefault(stay.left_step, {})[stay.n] = _End(entry, stay.reason or "")
        self.last_stay = stay.n

    def check_message(self, stay: Stay, row: Message, message: ChatMessage) -> None:
        self.last_seq += 1
        if stay.seq != self.last_seq:
            what = f"is of message #{stay.seq}, where #{self.last_seq} must be next"
            raise Contradicted(stay, what)
        expect(row, "type", row.type, message.type.value)
        expect(row, "text", row.text, text_of(message))
        for check in self.checks:
            check.message(row)
        if row.origin == Message.Origin.SAID:
            self.history = self.history.plus(row)

    def check_stay(self, step: Step, stay: Stay, row: Message, message: ChatMessage) -> None:
        left = stay.left_step
        if stay.entered_step != step.n or (left is not None and left < step.n):
            raise Contradicted(stay, f"lasts from step {stay.entered_step} to {left}")
        if (left is None) != (stay.reason is None):
            raise Contradicted(stay, f"left at {left} for the reason {stay.reason}")
        expect(stay, "type", stay.type, row.type)
        expect(stay, "has_calls", stay.has_calls, message.has_tool_execution_requests)
        if stay.overrides is not None:
            is_gone = row.redacted_step is not None and step.n < row.redacted_step
            expect(stay, "overrides are erased", is_erased(stay.overrides), is_gone)
        if row.redacted_step is not None or is_redacted(message):
            return
        shown = readings(message, stay.overrides)
        sizes = [frame_and_size(each)[1] for each in shown] if stay.overrides else [row.size]
        expect_any(stay, "size", stay.size, sizes)
        if self.estimator:
            counts = [count_tokens(self.estimator, each) for each in shown]
            expect_any(stay, "tokens", stay.tokens, counts)

    def check_counters(self, step: Step) -> None:
        expect(step, "last_seq", step.last_seq, self.last_seq)
        expect(step, "last_stay", step.last_stay, self.last_stay)
        expect(step, "said_count", step.said_count, self.history.count)
        expect(step, "history_tokens", step.history_tokens, self.history.tokens)

    # Steps

    def replay(self, step: Step) -> None:
        """Decide a step again, compare it with the stored rows, and apply it to the window."""
        expect(step, "count before", step.count_before, self.window.totals.count)
        expect(step, "tokens before", step.tokens_before, self.window.totals.tokens)
        if step.kind not in (*PROTECTING, Step.Kind.REPAIR, Step.Kind.INDEX):
            self.check_pins()
        self.decided(step).apply_to(self.window)
        expect(step, "count after", step.count_after, self.window.totals.count)
        expect(step, "tokens after", step.tokens_after, self.window.totals.tokens)
        self.check_load(step, step.policy, step.load)
        self.check_oldest(step)
        if step.kind in ORDERING:
            self.ordered_from = step.last_stay
        self.clears += step.kind == Step.Kind.CLEAR
        self.summaries += step.kind in (Step.Kind.COMPACT, Step.Kind.INDEX)

    def decided(self, step: Step) -> Transition:
        """Return the transition that the core decides, or decided in earlier versions; the stored
        one if it cannot decide.
        """
        try:
            return self.decided_now(step)
        except Contradicted:
            policies = self.policy_before, self.policy
            if not any(isinstance(policy, TurnWindow) for policy in policies):
                raise
            self.policy_before, self.policy = map(_earlier, policies)
            try:
                return self.decided_now(step)._replace(policy=policies[1])
            finally:
                self.policy_before, self.policy = policies

    def decided_now(self, step: Step) -> Transition:
        if not self.can_decide(step):
            return self.stored()
        match step.kind:
            case Step.Kind.ADD:
                return self.decided_add(step)
            case Step.Kind.SET:
                return self.decided_set(step)
            case Step.Kind.CLEAR:
                transition = clear(self.window, self.policy)
                self.compare(step, transition.evictions, self.left)
                return transition
            case Step.Kind.COMPACT:
                return self.decided_compaction(step)
            case Step.Kind.CLEAR_RESULTS:
                return self.decided_clearing(step)
            case Step.Kind.INDEX:
                return self.decided_index(step)
        return self.decided_pin(step)

    def can_decide(self, step: Step) -> bool:
        """Return whether the step was decided by an installed policy, not by a client."""
        if step.by_client or step.kind not in DECIDED:
            return False
        policies = (self.policy_before, self.policy)
        is_decided_by_policy = step.kind in (Step.Kind.ADD, Step.Kind.SET)
        return not (
            is_decided_by_policy and any(isinstance(p, UnavailablePolicy) for p in policies)
        )

    def stored(self) -> Transition:
        """Return the transition from the stored stays of the step."""
        if not self.arrived and not self.left:
            return unchanged(self.window, self.policy)
        return refill(self.window, self.remaining(self.left), None)

    def decided_add(self, step: Step) -> Transition:
        policy = self.policy
        if len(self.arrived) != 1 or policy is None or self.policy_before is None:
            raise Contradicted(step, f"adds {len(self.arrived)} messages under {policy}")
        (arrival,) = self.arrived
        arguments = self.window, arrival, self.policy_before, lambda: policy
        try:
            transition = admit(*arguments)
        except NoRoomBesidePins:
            if arrival.n not in self.left:
                raise
            transition = admit_beside_pins(*arguments)
        if transition.ignored:
            raise Contradicted(step, f"adds #{arrival.seq}, which the policy ignores")
        first = next(iter(self.window), None) if transition.at_head else None
        rank = head_rank(first.rank) if first else appended_rank(arrival.n)
        expect(stay_name(arrival.n, arrival.seq), "rank", arrival.rank, rank)
        self.compare(step, transition.evictions, self.left)
        return transition

    def decided_set(self, step: Step) -> Transition:
        """Rebuild the list before the policy trimmed it, and trim it again."""
        for n, (entry, reason) in self.left.items():
            if reason not in (*FOR_ROOM, Reason.SET, Reason.MOVED):
                what = f"left a set list for the reason {reason}"
                raise Contradicted(stay_name(n, entry.seq), what)
        trimmed = {n: end for n, end in self.left.items() if end.reason in FOR_ROOM}
        entries = self.remaining(self.left.keys() - trimmed.keys())
        transition = refill(self.window, entries, self.policy)
        self.compare(step, transition.evictions, trimmed)
        return transition

    def decided_pin(self, step: Step) -> Transition:
        """Pin or unpin again. The new stays have the ranks of the stays that end."""
        chosen = next((each for each in self.window if each.seq == step.seq), None)
        if chosen is None:
            raise Contradicted(step, f"pins #{step.seq}, which was not in the window")
        transition = set_pinned(self.window, chosen, self.policy, step.kind == Step.Kind.PIN)
        moved = {eviction.entry for eviction in transition.evictions}
        seqs = {entry.seq for entry in moved}
        begun = [each for each in transition.arrivals if each.seq in seqs]
        expected = [(each.seq, each.rank, each.pinned) for each in begun]
        found = [(each.seq, each.rank, each.pinned) for each in self.arrived]
        expect(step, "what it pins or unpins", found, expected)
        self.compare(step, transition.evictions, self.left)
        return self.stored()

    def decided_compaction(self, step: Step) -> Transition:
        """Cover the messages that left again. The summary has the rank of the first message that it
        covers.
        """
        if len(self.arrived) != 1 or self.arrived[0].seq != step.seq or len(self.left) < 2:
            raise Contradicted(step, f"replaces {len(self.left)} messages by #{step.seq}")
        (summary,) = self.arrived
        covered = [end.entry for end in self.left.values()]
        found, expected = (summary.rank, summary.pinned), (min(each.rank for each in covered), True)
        expect(stay_name(summary.n, summary.seq), "rank and pin", found, expected)
        try:
            transition = compact(self.window, covered, summary, self.policy)
        except NotCompactable as error:
            raise Contradicted(step, str(error)) from error
        self.compare(step, transition.evictions, self.left)
        return transition

    def decided_clearing(self, step: Step) -> Transition:
        """Clear the results that became stubs again. The stubs have the ranks of the results. An
        arrival that is a result itself counts as one that stays whole, and keeps interrupted calls.
        """
        policy = self.policy
        keep = policy.whole_results if policy else 0
        remaining, _ = recovered(list(self.window), policy)
        for entries, kept in ((remaining, keep), (self.window, keep - 1)):
            old = old_results(entries, kept) if keep else ()
            if {entry.key for entry in old} == self.left.keys():
                break
        self.compare(step, (Eviction(entry, Reason.STUBBED) for entry in old), self.left)
        expected = sorted((each.seq, each.rank, True) for each in old)
        found = sorted((each.seq, each.rank, each.is_stub) for each in self.arrived)
        expect(step, "the stubs", found, expected)
        return self.stored()

    def decided_index(self, step: Step) -> Transition:
        """Make the index again from the one before, from what left and from the window. An index
        of another version of the rule, or whose inputs were redacted, is checked for consistency.
        """
        if len(self.arrived) > 1 or len(self.left) > 1 or not (self.arrived or self.left):
            what = f"replaces {len(self.left)} messages by {len(self.arrived)}"
            raise Contradicted(step, what)
        for n, (entry, reason) in self.left.items():
            expect(stay_name(n, entry.seq), "reason", reason, Reason.INDEXED)
            expect(stay_name(n, entry.seq), "pinned", entry.pinned, True)
        for entry in self.arrived:
            expect(stay_name(entry.n, entry.seq), "pinned", entry.pinned, True)
            expect(step, "seq", step.seq, entry.seq)
            if step.note == NOTE and self.estimator and can_decide(self.policy):
                left = left_for(entry, [(each.kind, _gone(ends)) for each, ends in self.before])
                made = made_again(
                    self.memory, self.window, left, entry, self.policy, self.estimator
                )
                if made is not None:
                    place = self.remaining(self.left).index(entry)
                    expect(stay_name(entry.n, entry.seq), "place", place, made.place)
                    self.compare(step, made.evictions, self.left)
        return self.stored()

    def remaining(self, gone: Container[int]) -> list[Entry]:
        """Return the window and the arrivals by rank, without the stays that are `gone`."""
        entries = (*self.window, *self.arrived)
        return sorted((each for each in entries if each.n not in gone), key=attrgetter("rank"))

    def compare(self, step: Step, evictions: Iterable[Eviction], left: Mapping[int, _End]) -> None:
        """Raise Contradicted for the first stay that did not end as decided."""
        decided = {
            eviction.entry.n: _End(eviction.entry, eviction.reason) for eviction in evictions
        }
        for n in sorted(decided.keys() | left.keys()):
            expected, found = decided.get(n), left.get(n)
            if expected is None or found is None or expected.reason != found.reason:
                seq = (expected or left[n]).entry.seq
                what = (
                    f"at step {step.n} the replay has {_reason(expected)}, "
                    f"stored is {_reason(found)}"
                )
                raise Contradicted(stay_name(n, seq), what)

    def check_pins(self) -> None:
        """Check that the step pins and unpins nothing: a message that moves keeps its pin."""
        moved = [end.entry for end in self.left.values() if end.reason == Reason.MOVED]
        pinned = {entry.seq for entry in moved if entry.pinned}
        for entry in self.arrived:
            expect(stay_name(entry.n, entry.seq), "pinned", entry.pinned, entry.seq in pinned)

    def check_oldest(self, step: Step) -> None:
        """Check that the bound of a step is valid for its window."""
        if step.oldest > step.last_stay + 1:
            raise Contradicted(step, f"oldest {step.oldest} is above all stays")
        if not self.left and step.kind not in (Step.Kind.SET, Step.Kind.REPAIR):
            return
        for entry in unprotected(self.window):
            if entry.n < step.oldest:
                raise Contradicted(step, f"oldest is {step.oldest}, but stay {entry.n} is open")
            if step.kind == Step.Kind.ADD:
                return

    # The conversation

    def check_end(self) -> None:
        if self.next_stay:
            stay, _ = self.next_stay
            raise Contradicted(stay, f"begins at step {stay.entered_step}, which does not exist")
        for n, ends in self.ends.items():
            for entry, _ in ends.values():
                what = f"left at step {n}, which does not exist"
                raise Contradicted(stay_name(entry.n, entry.seq), what)
        with naming(self.memory):
            self.check_memory()
        for check in self.checks:
            check.end()

    def check_memory(self) -> None:
        memory, (count, tokens, _) = self.memory, self.window.totals
        replayed: dict[str, Any] = {
            "last_step": self.last.n,
            "last_seq": self.last_seq,
            "last_stay": self.last_stay,
            "said_count": self.history.count,
            "history_tokens": self.history.tokens,
            "window_count": count,
            "window_tokens": tokens,
            "window_size": sum(entry.size for entry in self.window),
            "oldest": self.last.oldest,
            "ordered_from": self.ordered_from,
        }
        if self.last.n:
            replayed |= {"policy": self.policy, "updated_at": self.last.at}
            replayed |= {"policy_estimator": self.last.policy_estimator}
        for name, value in replayed.items():
            expect(memory, name, getattr(memory, name), value)
        self.check_load(memory, memory.policy, memory.window_load)
        self.check_imported()

    def check_load(self, row: Step | Memory, policy: Policy | None, load: int | None) -> None:
        """Compare the load of the window. It is null if the policy's kind was not installed at the
        step.
        """
        is_known = load is not None or type(policy) in ALWAYS_INSTALLED
        if policy is None or (can_decide(policy) and is_known):
            expect(row, "load", load, load_of(policy, totals_under(policy, self.window)))

    def check_imported(self) -> None:
        """Check the state of an unfinished import: until its end all steps are its adds, and
        ignored messages make no steps. A session has summaries besides, and where a branch was to
        be made, copies may need a cleared memory (see `adding.add_copies`).
        """
        imported, steps = self.memory.imported, self.last.n - self.clears - self.summaries
        if imported is not None and not steps == self.history.count <= imported:
            what = f"its import has stored {imported}, but {steps} steps were taken"
            raise Contradicted(self.memory, what)


def _needed_of(message: ChatMessage) -> ChatMessage | None:
    """Return the part of a message that decisions need."""
    if isinstance(message, ToolExecutionResultMessage):
        return stub_of(message)
    if is_index(message):
        return message
    is_needed = message.has_tool_execution_requests or message.type is MessageType.SYSTEM
    return message if is_needed else None


class _EarlierTurns(TurnWindow):
    """A turn window as in earlier versions, which left answers behind whose question had no room
    beside a pinned summary.
    """

    def evict_partial_turn(self, head: Head) -> list[Eviction]:
        return Policy.evict_partial_turn(self, head)


def _earlier(policy: Policy | None) -> Policy | None:
    if not isinstance(policy, TurnWindow):
        return policy
    return _EarlierTurns(policy.limit, estimator=policy.estimator, **policy.options)


def _gone(ends: Mapping[int, _End]) -> list[Entry]:
    """Return what left in a step for a reason for which an index names its terms."""
    return [end.entry for end in ends.values() if end.reason in INDEXED]


def _reason(end: _End | None) -> str:
    return end.reason if end else "no departure"
