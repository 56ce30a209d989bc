"""Verification: replay a conversation through the core and compare the result with the stored rows.

Every step that a policy decided is decided again, and its evictions, reasons and totals are
compared. Steps of a client (`by_client`) are checked for consistency only. Rows are read and
compared in the order of the ledger, so the first contradiction is the first row that is wrong, and
memory holds a part of the window, without its messages.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain as chain_of
from operator import attrgetter

from chatmemory.core.estimators import estimator_for, is_known
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import NoRoomBesidePins, OversizedMessage
from chatmemory.core.messages import ChatMessage, MessageType, text_of
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import UnavailablePolicy
from chatmemory.core.transitions import Transition, admit, clear, refill
from chatmemory.core.window import Totals, Window
from chatmemory.ledger import chain, flags
from chatmemory.ledger.audited import check_hidden
from chatmemory.ledger.contradictions import (
    Contradicted,
    Contradiction,
    expect,
    naming,
    stay_name,
)
from chatmemory.ledger.conversation_row import check_anchor, check_imported, check_load
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.departing import ComparedDepartures, remains
from chatmemory.ledger.encoding import EncodedList
from chatmemory.ledger.entries import StayEntry, read_message, stay_entries, stay_entry
from chatmemory.ledger.indexing import IndexedMessages
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.pinning import PINNING, check_pins, moved_by_pin
from chatmemory.ledger.reading import BATCH, EndedStays, LedgerRows
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.replayed_windows import (
    check_bound,
    check_oldest,
    passed_window,
    window_of,
)
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stay_list import StayList
from chatmemory.ledger.stored_types import check_types
from chatmemory.ledger.stored_window import open_stays, stays_at
from chatmemory.ledger.vouching import Vouching
from chatmemory.models import Memory, Message, Stay, Step

KEPT_IN_MEMORY = 20_000
RANK = attrgetter("rank")


def verify(memory_id: str) -> Contradiction | None:
    """Return the first row of a conversation that differs from the replay, or None.

    A row that cannot be read differs, too. Other writers may go on meanwhile. Raises
    MemoryNotFound, also for a conversation whose deletion has begun and was audited.
    """
    try:
        with one_snapshot(), naming("the conversation"):
            check_hidden(memory_id)
            check_types(memory_id)
            _Replay(find_memory(memory_id)).run()
    except Contradicted as found:
        return Contradiction(memory_id, found.row, found.what)
    return None


class _Replay:
    """A replay of one conversation. The attributes are those of the step that is replayed.

    Entries have their message only where a decision needs it: system messages.
    """

    def __init__(self, memory: Memory) -> None:
        check_anchor(memory)
        self.memory = memory
        self.rows = LedgerRows(memory)
        self.vouching = Vouching(memory)
        self.indexed = IndexedMessages(memory.pk)
        self.window = Window()
        self.newest_rank: int | None = None
        self.said = Totals()
        self.flags = Memory()
        self.is_undecided = False
        self.ordered_from = 0
        self.in_memory = 0
        self.last: Step | None = None
        self.is_long = False
        self.arrived = StayList()
        self.left = EndedStays()
        self.commitments = EncodedList()
        self.begun = EncodedList()

    def run(self) -> None:
        with closing(self.rows):
            for step in self.rows.steps:
                with naming(step):
                    self.check_step(step)
                self.last = step
            self.rows.check_end()
        with naming(self.memory):
            self.check_memory()
        self.vouching.check_end()
        self.indexed.check_end()  # last, because what is missing there hides no alteration

    def check_step(self, step: Step) -> None:
        self.read(step)
        try:
            self.replay(step, self.last.policy if self.last else step.policy)
        except (OversizedMessage, NoRoomBesidePins) as error:
            raise Contradicted(step, f"the policy refuses what it adds: {error}") from error
        ended = EncodedList((stay.n, str(stay.reason)) for stay in self.left)
        self.vouching.check_step(step, self.commitments, self.begun, ended)

    def release(self, step: Step) -> None:
        """After many changes, read the window from its stays again, which are as replayed."""
        self.in_memory += len(self.arrived)
        if self.is_long or self.in_memory > KEPT_IN_MEMORY:
            self.window = window_of(stays_at(step), self.window.totals)
            self.arrived, self.in_memory = StayList(), 0

    # Rows

    def read(self, step: Step) -> None:
        """Read and check the rows of a step."""
        self.arrived = StayList()
        self.begun, self.commitments = EncodedList(), EncodedList()
        for stay, row, is_new in self.rows.begun(step.n):
            with naming(row):
                self.read_stay(stay, row, is_new, step)
        self.left = self.rows.ended(step.n)
        self.expect_rows(step)

    def read_stay(self, stay: Stay, row: Message, is_new: bool, step: Step) -> None:
        message = read_message(row)
        if is_new:
            self.check_message(row, message)
        _check_stay(stay, row, message, step)
        if is_new:
            expect(row, "tokens", row.tokens, stay.tokens)
            self.commitments.add(row.commitment)
        self.begun.add(chain.encoded_stay(stay))
        is_system = message.type is MessageType.SYSTEM
        self.arrived.append(stay_entry(stay, message if is_system else None))

    def check_message(self, row: Message, message: ChatMessage) -> None:
        expect(row, "type", row.type, message.type.value)
        expect(row, "text", row.text, text_of(message))
        self.vouching.check_message(row)
        if row.origin == Message.Origin.SAID:
            self.indexed.look_for(row)
            self.said = Totals(self.said.count + 1, self.said.tokens + row.tokens)

    def expect_rows(self, step: Step) -> None:
        """Compare the counters of the step."""
        expect(step, "last_seq", step.last_seq, self.rows.last_seq)
        expect(step, "last_stay", step.last_stay, self.rows.last_stay)
        expect(step, "said_count", step.said_count, self.said.count)
        expect(step, "history_tokens", step.history_tokens, self.said.tokens)

    # Steps

    def replay(self, step: Step, policy_before: Policy | None) -> None:
        self.is_long = self.looked_at(step) > KEPT_IN_MEMORY
        if self.is_long and self.last:
            self.window = passed_window(stays_at(self.last), self.window.totals)
        if step.kind not in PINNING:
            check_pins(self.window, self.arrived, self.left)
        expect(step, "count before", step.count_before, self.window.totals.count)
        expect(step, "tokens before", step.tokens_before, self.window.totals.tokens)
        if _is_followed(step, policy_before):
            self.follow(step)
        elif step.kind == Step.Kind.ADD:
            self.decide_add(step, policy_before)
        elif step.kind == Step.Kind.SET:
            self.decide_set(step)
        elif step.kind in PINNING:
            self.decide_pins(step)
        else:
            left = self.departures(step)
            self.apply(clear(self.window, step.policy, left), left)
        expect(step, "count after", step.count_after, self.window.totals.count)
        expect(step, "tokens after", step.tokens_after, self.window.totals.tokens)
        self.release(step)
        check_bound(step)
        if self.is_long:
            check_oldest(step, passed_window(stays_at(step, oldest=1), self.window.totals))
        elif self.left or step.kind == Step.Kind.SET:
            check_oldest(step, self.window)
        if step.kind in (Step.Kind.SET, *PINNING):
            self.ordered_from = step.last_stay
        self.is_undecided |= isinstance(step.policy, UnavailablePolicy)

    def decide_add(self, step: Step, policy_before: Policy | None) -> None:
        arrived, policy = self.arrived, step.policy
        if len(arrived) != 1 or policy is None or policy_before is None:
            raise Contradicted(step, f"adds {len(arrived)} messages under {policy}")
        (arrival,) = arrived
        left = self.departures(step)
        transition = admit(self.window, arrival, policy_before, lambda: policy, left)
        if transition.ignored:
            raise Contradicted(step, f"adds #{arrival.seq}, which the policy ignores")
        self.check_rank(arrival, transition)
        self.apply(transition, left)
        flags.added(self.flags, transition, step.n)

    def check_rank(self, arrival: StayEntry, transition: Transition) -> None:
        name, rank = stay_name(arrival.n, arrival.seq), arrival.rank
        first = next(stay_entries(self.window), None)
        if transition.at_head and first and rank >= first.rank:
            raise Contradicted(name, f"rank {rank} is not below the head's {first.rank}")
        if not transition.at_head:
            if self.newest_rank is not None and rank <= self.newest_rank:
                raise Contradicted(name, f"rank {rank} is not above {self.newest_rank}")
            self.newest_rank = rank

    def decide_set(self, step: Step) -> None:
        """Rebuild the list before the policy trimmed it, and trim it again."""
        trimmed = (Reason.CAPACITY, Reason.ORPHANED, Reason.TURN)
        for stay in self.left:
            if stay.reason not in (*trimmed, Reason.SET, Reason.MOVED):
                name = stay_name(stay.n, stay.seq)
                raise Contradicted(name, f"left a set list for the reason {stay.reason}")
        entries = self.remaining(spared=trimmed)
        left = self.departures(step)
        self.apply(refill(self.window, entries, step.policy, left), left)
        self.newest_rank = entries[-1].rank if entries else self.newest_rank

    def decide_pins(self, step: Step) -> None:
        left = self.departures(step)
        left.extend(moved_by_pin(step, self.window, self.arrived))
        self.apply(refill(self.window, self.remaining(), None), left)

    def follow(self, step: Step) -> None:
        """Apply the stored changes, and check that they are possible."""
        if not self.left and not self.arrived:
            return
        entries = self.remaining()
        for stay in self.left.not_taken():
            name = stay_name(stay.n, stay.seq)
            raise Contradicted(name, f"left at step {step.n}, when it was not in the window")
        self.apply(refill(self.window, entries, None), self.departures(step))
        self.newest_rank = entries[-1].rank if entries else self.newest_rank

    def remaining(self, spared: Collection[str] = ()) -> Sequence[StayEntry]:
        """Return what remains of the window and the arrivals by rank, beside what left for reasons
        that are not spared.
        """
        stays = partial(remains, left=self.left, spared=spared)
        window = filter(stays, stay_entries(self.window.taken()))
        if not self.is_long:
            return sorted(chain_of(window, filter(stays, self.arrived)), key=RANK)
        entries = self.arrived.keep(stays)
        entries.extend(window)
        return entries.by_rank()

    def departures(self, step: Step) -> ComparedDepartures:
        """Return what compares the departures that are decided with the stored ones."""
        return ComparedDepartures(step, self.left, kept_from=step.last_stay if self.is_long else 0)

    def apply(self, transition: Transition, left: ComparedDepartures) -> None:
        """Apply a transition if all left as stored. A long window is read from its stays later."""
        left.check()
        if self.is_long:
            self.window.totals = transition.after
        else:
            transition.apply_to(self.window)

    def looked_at(self, step: Step) -> int:
        """Return of how many entries the replay of a step takes notice."""
        changed = len(self.arrived) + len(self.left)
        is_by_head = step.kind == Step.Kind.ADD and not step.by_client
        return changed + self.window.totals.count if changed and not is_by_head else changed

    # The conversation

    def check_memory(self) -> None:
        memory = self.memory
        expect(memory, "window_count", memory.window_count, self.window.totals.count)
        expect(memory, "window_tokens", memory.window_tokens, self.window.totals.tokens)
        expect(memory, "said_count", memory.said_count, self.said.count)
        expect(memory, "history_tokens", memory.history_tokens, self.said.tokens)
        if self.last:
            expect(memory, "policy", memory.policy, self.last.policy)
        oldest = self.last.oldest if self.last else Counters().oldest
        expect(memory, "oldest", memory.oldest, oldest)
        expect(memory, "ordered_from", memory.ordered_from, self.ordered_from)
        expect(memory, "last_seq", memory.last_seq, self.rows.last_seq)
        expect(memory, "last_stay", memory.last_stay, self.rows.last_stay)
        check_load(memory, self.window.totals)
        check_imported(memory, self.said)
        self.check_flags()

    def check_flags(self) -> None:
        with closing(self.standing_entries()) as entries:
            flags.replaced(self.flags, entries)
        names = ["waiting_call", "missing_results", "dangling_call"]
        if not self.is_undecided:
            names.append("oversized_step")
        for name in names:
            expect(self.memory, name, getattr(self.memory, name), getattr(self.flags, name))

    def standing_entries(self) -> Generator[StayEntry]:
        """Yield the stored window's entries, which must add up to the replayed ones; those of tool
        calls with their messages.
        """
        standing = Totals()
        stays = open_stays(self.memory.pk).select_related("message")
        for stay in stays.iterator(BATCH):
            entry = stay_entry(stay, read_message(stay.message) if stay.has_calls else None)
            standing = standing.plus(entry)
            yield entry
        expect(self.memory, "the sum of the open stays", standing, self.window.totals)


def _check_stay(stay: Stay, row: Message, message: ChatMessage, step: Step) -> None:
    if not stay.entered_step == step.n <= (stay.left_step or step.n):
        raise Contradicted(stay, f"lasts from step {stay.entered_step} to {stay.left_step}")
    if (stay.left_step is None) != (stay.reason is None):
        raise Contradicted(stay, f"left at {stay.left_step} for the reason {stay.reason}")
    expect(stay, "type", stay.type, row.type)
    expect(stay, "has_calls", stay.has_calls, message.has_tool_execution_requests)
    name = step.policy_estimator
    if is_known(name) and row.redacted_step is None and not is_redacted(message):
        # Not by `count_tokens`, which refuses counts that earlier versions took
        counted = estimator_for(name).estimate_token_count_in_message(message)
        expect(stay, "tokens", stay.tokens, counted)


def _is_followed(step: Step, policy_before: Policy | None) -> bool:
    """Return whether a step cannot be replayed: a client or an unknown policy decided it."""
    kinds = (Step.Kind.ADD, Step.Kind.SET, Step.Kind.CLEAR, *PINNING)
    if step.by_client or step.kind not in kinds:
        return True
    decides = step.kind in (Step.Kind.ADD, Step.Kind.SET)
    policies = (policy_before, step.policy) if decides else ()
    return any(isinstance(policy, UnavailablePolicy) for policy in policies)
