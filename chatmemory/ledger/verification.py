"""Verification: replay a conversation through the core and compare the result with the stored rows.

Every step that a policy decided is decided again, and its evictions, reasons and totals are
compared. Steps of a client (`by_client`) are checked for consistency only. Rows are compared in the
order of the ledger, so the first contradiction is the first row that is wrong.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from chatmemory.core.estimators import count_tokens, estimator_for, is_known
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.messages import MessageType, text_of
from chatmemory.core.misfits import misfit_in
from chatmemory.core.policies import Policy, UnavailablePolicy
from chatmemory.core.transitions import Transition, admit, clear, refill
from chatmemory.core.window import Totals, Window, total
from chatmemory.ledger import flags, vouching
from chatmemory.ledger.entries import StayEntry, read_message, stay_entries, stay_entry
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Memory, Message, Stay, Step


@dataclass(frozen=True)
class Contradiction:
    """A stored row that differs from the replay."""

    memory_id: str
    row: str
    what: str

    def __str__(self) -> str:
        return f"{self.memory_id!r}: {self.row}: {self.what}"


class _Contradicted(Exception):
    def __init__(self, row: object, what: str) -> None:
        self.row, self.what = _name(row), what
        super().__init__(what)


def verify(memory_id: str) -> Contradiction | None:
    """Return the first row of a conversation that differs from the replay, or None.

    Other writers may go on meanwhile. Raises MemoryNotFound.
    """
    try:
        with one_snapshot():
            replay = _Replay(find_memory(memory_id))
        replay.run()
    except _Contradicted as found:
        return Contradiction(memory_id, found.row, found.what)
    except CorruptRow as error:
        return Contradiction(memory_id, "a message", str(error))
    return None


class _Replay:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        rows = {"memory": memory}
        self.messages = list(Message.objects.filter(**rows).order_by("seq"))
        self.stays = list(Stay.objects.filter(**rows).order_by("n"))
        self.steps = list(Step.objects.filter(**rows).order_by("n"))
        self.entered: dict[int, list[Stay]] = defaultdict(list)
        self.left: dict[int, list[Stay]] = defaultdict(list)
        self.redacted = {row.seq for row in self.messages if row.redacted_step is not None}
        self.window = Window()
        self.newest_rank: int | None = None
        self.said = Totals()
        self.rows_so_far = (0, 0)
        self.flags = Memory()

    def run(self) -> None:
        self.check_numbers()
        self.check_messages()
        self.check_stays()
        policy = self.steps[0].policy if self.steps else None
        for step in self.steps:
            self.replay(step, policy)
            policy = step.policy
        self.check_memory(policy)
        self.check_chain()

    def check_numbers(self) -> None:
        for name, rows, last in (
            ("message", self.messages, self.memory.last_seq),
            ("stay", self.stays, self.memory.last_stay),
            ("step", self.steps, self.memory.last_step),
        ):
            numbers = [_number(row) for row in rows]
            missing = next((n for n, found in enumerate(numbers, 1) if n != found), len(rows) + 1)
            if numbers != list(range(1, last + 1)):
                raise _Contradicted(f"{name} {missing}", f"is missing; the counter is {last}")

    def check_messages(self) -> None:
        for row in self.messages:
            message = read_message(row)
            _expect(row, "type", row.type, message.type.value)
            _expect(row, "text", row.text, text_of(message))
        self.check_redactions()

    def check_redactions(self) -> None:
        steps = {row.redacted_step: row.seq for row in self.messages if row.redacted_step}
        for step in self.steps:
            expected = steps.pop(step.n, None) if step.kind == Step.Kind.REDACT else None
            _expect(step, "seq", step.seq, expected)
        for n, seq in steps.items():
            raise _Contradicted(
                self.messages[seq - 1], f"redacted at step {n}, which is no redaction"
            )

    def check_stays(self) -> None:
        first: dict[int, Stay] = {}
        for stay in self.stays:
            if not 1 <= stay.seq <= len(self.messages):
                raise _Contradicted(stay, f"is of message #{stay.seq}, which does not exist")
            self.check_stay(stay, self.messages[stay.seq - 1])
            first.setdefault(stay.seq, stay)
            self.entered[stay.entered_step].append(stay)
            if stay.left_step is not None:
                self.left[stay.left_step].append(stay)
        for row in self.messages:
            if row.seq not in first:
                raise _Contradicted(row, "never entered the window: it has no stay")
            _expect(row, "tokens", row.tokens, first[row.seq].tokens)

    def check_stay(self, stay: Stay, row: Message) -> None:
        steps = len(self.steps)
        if not 1 <= stay.entered_step <= (stay.left_step or steps) <= steps:
            raise _Contradicted(stay, f"lasts from step {stay.entered_step} to {stay.left_step}")
        if (stay.left_step is None) != (stay.reason is None):
            raise _Contradicted(stay, f"left at {stay.left_step} for the reason {stay.reason}")
        message = read_message(row)
        _expect(stay, "type", stay.type, row.type)
        _expect(stay, "has_calls", stay.has_calls, message.has_tool_execution_requests)
        name = self.steps[stay.entered_step - 1].policy_estimator
        if is_known(name) and row.seq not in self.redacted:
            _expect(stay, "tokens", stay.tokens, count_tokens(estimator_for(name), message))

    # Steps

    def replay(self, step: Step, policy_before: Policy | None) -> None:
        _expect(step, "count before", step.count_before, self.window.totals.count)
        _expect(step, "tokens before", step.tokens_before, self.window.totals.tokens)
        self.expect_rows(step)
        if self.is_followed(step, policy_before):
            self.follow(step)
        elif step.kind == Step.Kind.ADD:
            self.decide_add(step, policy_before)
        elif step.kind == Step.Kind.SET:
            self.decide_set(step)
        else:
            self.compare(step, clear(self.window, step.policy))
        _expect(step, "count after", step.count_after, self.window.totals.count)
        _expect(step, "tokens after", step.tokens_after, self.window.totals.tokens)
        self.check_oldest(step)

    def is_followed(self, step: Step, policy_before: Policy | None) -> bool:
        """Return whether a step cannot be replayed: a client or an unknown policy decided it."""
        if step.by_client or step.kind not in (Step.Kind.ADD, Step.Kind.SET, Step.Kind.CLEAR):
            return True
        decides = step.kind != Step.Kind.CLEAR
        policies = (policy_before, step.policy) if decides else ()
        return any(isinstance(policy, UnavailablePolicy) for policy in policies)

    def expect_rows(self, step: Step) -> None:
        """Compare the counters of the step."""
        messages, stays = self.rows_so_far
        stays += len(self.entered[step.n])
        new = [stay.seq for stay in self.entered[step.n] if stay.seq > messages]
        for seq in new:
            row = self.messages[seq - 1]
            if row.origin == Message.Origin.SAID:
                self.said = Totals(self.said.count + 1, self.said.tokens + row.tokens)
        self.rows_so_far = messages + len(new), stays
        _expect(step, "last_seq", step.last_seq, messages + len(new))
        _expect(step, "last_stay", step.last_stay, stays)
        _expect(step, "said_count", step.said_count, self.said.count)
        _expect(step, "history_tokens", step.history_tokens, self.said.tokens)

    def decide_add(self, step: Step, policy_before: Policy | None) -> None:
        arrived = self.entered[step.n]
        policy = step.policy
        if len(arrived) != 1 or policy is None or policy_before is None:
            raise _Contradicted(step, f"adds {len(arrived)} messages under {policy}")
        arrival = self.entry(arrived[0])
        transition = admit(self.window, arrival, policy_before, lambda: policy)
        if transition.ignored:
            raise _Contradicted(step, f"adds #{arrived[0].seq}, which the policy ignores")
        self.check_rank(arrived[0], transition)
        self.compare(step, transition)
        flags.left_at_once(self.flags, misfit_in(transition), step.n)

    def check_rank(self, stay: Stay, transition: Transition) -> None:
        first = next(iter(self.window), None)
        if transition.at_head and isinstance(first, StayEntry) and stay.rank >= first.rank:
            raise _Contradicted(stay, f"rank {stay.rank} is not below the head's {first.rank}")
        if not transition.at_head:
            if self.newest_rank is not None and stay.rank <= self.newest_rank:
                raise _Contradicted(stay, f"rank {stay.rank} is not above {self.newest_rank}")
            self.newest_rank = stay.rank

    def decide_set(self, step: Step) -> None:
        """Rebuild the list before the policy trimmed it, and trim it again."""
        trimmed = (Reason.CAPACITY, Reason.ORPHANED)
        removed = {s.n for s in self.left[step.n] if s.reason not in trimmed}
        for stay in self.left[step.n]:
            if stay.reason not in (*trimmed, Reason.SET, Reason.MOVED):
                raise _Contradicted(stay, f"left a set list for the reason {stay.reason}")
        remaining = self.remaining(step, removed)
        transition = refill(self.window, remaining, step.policy)
        others = {n: reason for n, reason in self.stored_departures(step).items() if n in removed}
        self.compare(step, transition, others)
        self.newest_rank = max((entry.rank for entry in remaining), default=self.newest_rank)

    def follow(self, step: Step) -> None:
        """Apply the stored changes, and check that they are possible."""
        open_stays = {entry.key for entry in self.window}
        for stay in self.left[step.n]:
            if stay.n not in open_stays and stay.entered_step != step.n:
                raise _Contradicted(stay, f"left at step {step.n}, when it was not in the window")
        remaining = self.remaining(step, {stay.n for stay in self.left[step.n]})
        if step.kind in (Step.Kind.POLICY, Step.Kind.LABELS):
            _expect(step, "count after", step.count_after, len(remaining))
        self.window = Window(remaining)
        self.newest_rank = max((entry.rank for entry in remaining), default=self.newest_rank)

    def remaining(self, step: Step, removed: Collection[int]) -> list[StayEntry]:
        """Return the entries of the window and of the step, by rank, without the removed ones."""
        entries = [entry for entry in self.window if isinstance(entry, StayEntry)]
        entries += [self.entry(stay) for stay in self.entered[step.n]]
        return sorted((e for e in entries if e.key not in removed), key=lambda entry: entry.rank)

    def compare(
        self, step: Step, transition: Transition, others: dict[int, Reason] | None = None
    ) -> None:
        """Compare the decided departures with the stored ones, then apply the transition."""
        decided = {e.entry.key: e.reason for e in transition.evictions} | (others or {})
        stored = self.stored_departures(step)
        for n in sorted({*map(_key, decided), *stored}):
            expected, found = decided.get(n), stored.get(n)
            if expected != found:
                raise _Contradicted(
                    self.stays[n - 1],
                    f"at step {step.n} the replay has {expected or 'no departure'}, "
                    f"stored is {found or 'no departure'}",
                )
        transition.apply_to(self.window)

    def stored_departures(self, step: Step) -> dict[int, Reason]:
        return {stay.n: Reason(str(stay.reason)) for stay in self.left[step.n]}

    def entry(self, stay: Stay) -> StayEntry:
        return stay_entry(stay, read_message(self.messages[stay.seq - 1]))

    def check_oldest(self, step: Step) -> None:
        if step.oldest > step.last_stay + 1:
            raise _Contradicted(step, f"oldest {step.oldest} is above all stays")
        if not self.left[step.n] and step.kind != Step.Kind.SET:
            return
        for position, entry in enumerate(self.window):
            if position == 0 and entry.type is MessageType.SYSTEM:
                continue
            if _key(entry.key) < step.oldest:
                raise _Contradicted(step, f"oldest is {step.oldest}, but stay {entry.key} is open")
            if step.kind == Step.Kind.ADD:
                return

    def check_memory(self, policy: Policy | None) -> None:
        memory = self.memory
        _expect(memory, "window_count", memory.window_count, self.window.totals.count)
        _expect(memory, "window_tokens", memory.window_tokens, self.window.totals.tokens)
        _expect(memory, "said_count", memory.said_count, self.said.count)
        _expect(memory, "history_tokens", memory.history_tokens, self.said.tokens)
        if self.steps:
            _expect(memory, "policy", memory.policy, policy)
            _expect(memory, "oldest", memory.oldest, self.steps[-1].oldest)
        self.check_flags()
        if total(self.window) != self.window.totals:
            raise _Contradicted(memory, "the window's totals do not add up")

    def check_chain(self) -> None:
        found = itertools.chain(
            vouching.altered_messages(self.messages, self.steps),
            vouching.altered_steps(self.memory, self.messages, self.steps, self.entered, self.left),
            vouching.altered_labels(self.memory, self.steps),
            vouching.missing_audit_entries(self.memory, self.steps),
        )
        for row, what in found:
            raise _Contradicted(row, what)

    def check_flags(self) -> None:
        flags.replaced(self.flags, stay_entries(self.window))
        names = ["waiting_call", "missing_results", "dangling_call"]
        if not any(isinstance(step.policy, UnavailablePolicy) for step in self.steps):
            names.append("oversized_step")
        for name in names:
            _expect(self.memory, name, getattr(self.memory, name), getattr(self.flags, name))


def _expect(row: object, what: str, found: object, expected: object) -> None:
    if found != expected:
        raise _Contradicted(row, f"{what} is {found!r}, the replay has {expected!r}")


def _name(row: object) -> str:
    match row:
        case Message():
            return f"message #{row.seq}"
        case Stay():
            return f"stay {row.n} of message #{row.seq}"
        case Step():
            return f"step {row.n}"
        case Memory():
            return "the conversation's counters"
    return str(row)


def _number(row: Message | Stay | Step) -> int:
    return row.seq if isinstance(row, Message) else row.n


def _key(key: object) -> int:
    assert isinstance(key, int)
    return key
