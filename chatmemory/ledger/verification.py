"""Verification: replay a conversation through the core and compare the result with the stored rows.

Every step that a policy decided is decided again, and its evictions, reasons and totals are
compared. Steps of a client (`by_client`) are checked for consistency only. Rows are read and
compared in the order of the ledger, so the first contradiction is the first row that is wrong, and
memory holds one window, without its messages.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable, Mapping
from contextlib import closing
from operator import attrgetter

from chatmemory.core.codec import message_to_json
from chatmemory.core.estimators import estimator_for, is_known
from chatmemory.core.eviction import Eviction, Reason
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
from chatmemory.ledger.conversation_row import (
    check_activity,
    check_anchor,
    check_imported,
    check_load,
)
from chatmemory.ledger.encoding import Encoded
from chatmemory.ledger.indexing import check_index
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.pinning import PINNING, check_pins, moved_by_pin
from chatmemory.ledger.reading import BATCH, EndedStay, LedgerRows
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.stored_types import check_types
from chatmemory.ledger.vouching import Vouching
from chatmemory.ledger.windows import (
    StayEntry,
    open_stays,
    read_message,
    size_of,
    stay_entries,
    stay_entry,
    unprotected,
)
from chatmemory.models import Memory, Message, Stay, Step

TRIMMED = (Reason.CAPACITY, Reason.ORPHANED, Reason.TURN)


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
        self.window = Window()
        self.newest_rank: int | None = None
        self.said = Totals()
        self.flags = Memory()
        self.is_undecided = False
        self.ordered_from = 0
        self.last: Step | None = None
        self.arrived: list[StayEntry] = []
        self.left: dict[int, EndedStay] = {}
        self.commitments: list[bytes | memoryview | None] = []
        self.begun: list[Encoded] = []

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
        check_index(self.memory.pk)  # last, because what is missing there hides no alteration

    def check_step(self, step: Step) -> None:
        self.read(step)
        try:
            self.replay(step, self.last.policy if self.last else step.policy)
        except (OversizedMessage, NoRoomBesidePins) as error:
            raise Contradicted(step, f"the policy refuses what it adds: {error}") from error
        ended = [(stay.n, str(stay.reason)) for stay in self.left.values()]
        self.vouching.check_step(step, self.commitments, self.begun, ended)

    # Rows

    def read(self, step: Step) -> None:
        """Read and check the rows of a step."""
        self.arrived, self.begun, self.commitments = [], [], []
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
            self.commitments.append(row.commitment)
        self.begun.append(chain.encoded_stay(stay))
        is_system = message.type is MessageType.SYSTEM
        self.arrived.append(stay_entry(stay, message if is_system else None))

    def check_message(self, row: Message, message: ChatMessage) -> None:
        expect(row, "type", row.type, message.type.value)
        expect(row, "text", row.text, text_of(message))
        self.vouching.check_message(row)
        if row.origin == Message.Origin.SAID:
            self.said = Totals(self.said.count + 1, self.said.tokens + row.tokens)

    def expect_rows(self, step: Step) -> None:
        """Compare the counters of the step."""
        expect(step, "last_seq", step.last_seq, self.rows.last_seq)
        expect(step, "last_stay", step.last_stay, self.rows.last_stay)
        expect(step, "said_count", step.said_count, self.said.count)
        expect(step, "history_tokens", step.history_tokens, self.said.tokens)

    # Steps

    def replay(self, step: Step, policy_before: Policy | None) -> None:
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
            self.compare(step, moved_by_pin(step, self.window, self.arrived), self.left)
            refill(self.window, self.remaining(self.left), None).apply_to(self.window)
        else:
            self.apply(step, clear(self.window, step.policy), self.left)
        expect(step, "count after", step.count_after, self.window.totals.count)
        expect(step, "tokens after", step.tokens_after, self.window.totals.tokens)
        self.check_oldest(step)
        if step.kind in (Step.Kind.SET, *PINNING):
            self.ordered_from = step.last_stay
        self.is_undecided |= isinstance(step.policy, UnavailablePolicy)

    def decide_add(self, step: Step, policy_before: Policy | None) -> None:
        arrived, policy = self.arrived, step.policy
        if len(arrived) != 1 or policy is None or policy_before is None:
            raise Contradicted(step, f"adds {len(arrived)} messages under {policy}")
        (arrival,) = arrived
        transition = admit(self.window, arrival, policy_before, lambda: policy)
        if transition.ignored:
            raise Contradicted(step, f"adds #{arrival.seq}, which the policy ignores")
        self.check_rank(arrival, transition)
        self.apply(step, transition, self.left)
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
        for stay in self.left.values():
            if stay.reason not in (*TRIMMED, Reason.SET, Reason.MOVED):
                name = stay_name(stay.n, stay.seq)
                raise Contradicted(name, f"left a set list for the reason {stay.reason}")
        not_in_list = {n for n, stay in self.left.items() if stay.reason not in TRIMMED}
        not_in_list &= {entry.n for entry in (*stay_entries(self.window), *self.arrived)}
        entries = self.remaining(not_in_list)
        trimmed = {n: stay for n, stay in self.left.items() if n not in not_in_list}
        self.apply(step, refill(self.window, entries, step.policy), trimmed)
        self.newest_rank = entries[-1].rank if entries else self.newest_rank

    def follow(self, step: Step) -> None:
        """Apply the stored changes, and check that they are possible."""
        if not self.left and not self.arrived:
            return
        known = {entry.n for entry in (*stay_entries(self.window), *self.arrived)}
        for stay in self.left.values():
            if stay.n not in known:
                name = stay_name(stay.n, stay.seq)
                raise Contradicted(name, f"left at step {step.n}, when it was not in the window")
        entries = self.remaining(self.left)
        refill(self.window, entries, None).apply_to(self.window)
        self.newest_rank = entries[-1].rank if entries else self.newest_rank

    def remaining(self, gone: Container[int]) -> list[StayEntry]:
        """Return the window and the arrivals by rank, without the stays that are `gone`."""
        entries = (*stay_entries(self.window), *self.arrived)
        return sorted((each for each in entries if each.n not in gone), key=attrgetter("rank"))

    def apply(self, step: Step, transition: Transition, left: Mapping[int, EndedStay]) -> None:
        """Apply a transition if what it evicts is what left."""
        self.compare(step, transition.evictions, left)
        transition.apply_to(self.window)

    def compare(
        self, step: Step, evictions: Iterable[Eviction], left: Mapping[int, EndedStay]
    ) -> None:
        """Raise Contradicted for the first stay that did not end as decided."""
        decided = {
            entry.n: EndedStay(entry.n, entry.seq, eviction.reason)
            for eviction in evictions
            for entry in stay_entries([eviction.entry])
        }
        for n in sorted(decided.keys() | left.keys()):
            expected, found = decided.get(n), left.get(n)
            if expected is None or found is None or expected.reason != found.reason:
                raise Contradicted(
                    stay_name(n, (expected or left[n]).seq),
                    f"at step {step.n} the replay has {_reason(expected)}, "
                    f"stored is {_reason(found)}",
                )

    def check_oldest(self, step: Step) -> None:
        """Check that the bound of a step is one for the window that it left."""
        if step.oldest > step.last_stay + 1:
            raise Contradicted(step, f"oldest {step.oldest} is above all stays")
        if not self.left and step.kind != Step.Kind.SET:
            return
        for entry in unprotected(self.window):
            if entry.n < step.oldest:
                raise Contradicted(step, f"oldest is {step.oldest}, but stay {entry.n} is open")
            if step.kind == Step.Kind.ADD:
                return

    # The conversation

    def check_memory(self) -> None:
        memory = self.memory
        expect(memory, "window_count", memory.window_count, self.window.totals.count)
        expect(memory, "window_tokens", memory.window_tokens, self.window.totals.tokens)
        expect(memory, "said_count", memory.said_count, self.said.count)
        expect(memory, "history_tokens", memory.history_tokens, self.said.tokens)
        if self.last:
            expect(memory, "policy", memory.policy, self.last.policy)
        oldest = self.last.oldest if self.last else 1
        expect(memory, "oldest", memory.oldest, oldest)
        expect(memory, "ordered_from", memory.ordered_from, self.ordered_from)
        expect(memory, "last_seq", memory.last_seq, self.rows.last_seq)
        expect(memory, "last_stay", memory.last_stay, self.rows.last_stay)
        check_activity(memory)
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
        standing, size = Totals(), 0
        stays = open_stays(self.memory.pk).select_related("message")
        for stay in stays.iterator(BATCH):
            entry = stay_entry(stay, read_message(stay.message) if stay.has_calls else None)
            standing, size = standing.plus(entry), size + entry.size
            yield entry
        expect(self.memory, "the sum of the open stays", standing, self.window.totals)
        expect(self.memory, "window_size", self.memory.window_size, size)


def _reason(stay: EndedStay | None) -> str:
    return str(stay.reason) if stay else "no departure"


def _check_stay(stay: Stay, row: Message, message: ChatMessage, step: Step) -> None:
    if not stay.entered_step == step.n <= (stay.left_step or step.n):
        raise Contradicted(stay, f"lasts from step {stay.entered_step} to {stay.left_step}")
    if (stay.left_step is None) != (stay.reason is None):
        raise Contradicted(stay, f"left at {stay.left_step} for the reason {stay.reason}")
    expect(stay, "type", stay.type, row.type)
    expect(stay, "has_calls", stay.has_calls, message.has_tool_execution_requests)
    if row.redacted_step is not None or is_redacted(message):
        return
    expect(stay, "size", stay.size, size_of(message_to_json(message)))
    name = step.policy_estimator
    if is_known(name):
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
