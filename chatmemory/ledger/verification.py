"""Verifies a conversation: decides its changes again, and compares the results with the stored
rows.

- Rows are read in the order of the ledger. So the first contradiction is the first wrong row.
- A step that a policy decided is decided again by the same functions. Its evictions, reasons and
  totals are compared with the stored rows.
- A step of a client cannot be decided again. Its rows are only compared with each other.
- To save RAM, only one window is loaded at a time, with only the messages that decisions need.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.contradictions import (
    Contradicted,
    Contradiction,
    expect,
    expect_any,
    naming,
    stay_name,
)
from chatmemory.exceptions import NoRoomBesidePins, OversizedMessage
from chatmemory.ledger.deletions import check_hidden
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.overrides import is_erased, readings
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.stored_step import PINNING, End, Ends, StoredStep
from chatmemory.ledger.verified_rows import LedgerRows, UnreadableBatch
from chatmemory.ledger.windows import shown_message, stay_entry, unprotected
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
from chatmemory.recall.index import is_index
from chatmemory.rooms import rooms
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import stub_of
from chatmemory.windows.policies import MessageWindow, Policy, TokenWindow, TurnWindow
from chatmemory.windows.stored_policies import can_decide, load_of
from chatmemory.windows.transitions import totals_under
from chatmemory.windows.window import Entry, Totals, Window

BATCH = 500  # rows that are read at once

# The kinds of steps that begin pinned stays
PROTECTING = (Step.Kind.COMPACT, *PINNING)
# The kinds of steps after which the order by number differs from the order by rank
ORDERING = (Step.Kind.SET, Step.Kind.REPAIR, Step.Kind.CLEAR_RESULTS, *PROTECTING)
ALWAYS_INSTALLED = (MessageWindow, TokenWindow, TurnWindow)


def verify(memory_id: str) -> Contradiction | None:
    """Return the first row of a conversation that contradicts the rules or other rows. None if all
    rows agree.

    A row that cannot be read is a contradiction, too. All rows are read in one snapshot of the
    database, so other writers may change the conversation meanwhile.

    Raises MemoryNotFound for an unknown id, and for a conversation that is being deleted. If no
    audit entry records the deletion, a contradiction is returned instead.
    """
    try:
        with one_snapshot(), naming("the conversation"):
            check_hidden(memory_id)
            memory = find_memory(memory_id)
            try:
                _Replay(memory, BATCH).run()
            except UnreadableBatch:
                _Replay(memory, batch=1).run()
    except Contradicted as found:
        return Contradiction(memory_id, found.row, found.what)
    return None


class _Replay:
    """Replays one conversation step by step. The attributes belong to the step that is being
    replayed.
    """

    def __init__(self, memory: Memory, batch: int) -> None:
        self.memory = memory
        self.rows = LedgerRows(memory, batch)
        self.stays = self.rows.stays()
        self.next_stay = next(self.stays, None)
        self.ends: dict[int, dict[int, End]] = {}  # the ends of stays that were read, by step
        self.checks = [check for room in rooms() if (check := room.verifying(memory))]
        self.window = Window()
        self.last = Step(n=0, oldest=1)
        self.policy_before: Policy | None = None
        self.policy: Policy | None = None
        self.estimator: TokenCountEstimator | None = None
        self.arrived: list[Entry] = []
        self.left: Ends = {}
        self.before: list[tuple[Step, Ends]] = []  # the last two steps, newest first
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
            raise Contradicted(
                step, f"the step adds a message that the policy rejects: {error}"
            ) from error
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
            self.ends.setdefault(stay.left_step, {})[stay.n] = End(entry, stay.reason or "")
        self.last_stay = stay.n

    def check_message(self, stay: Stay, row: Message, message: ChatMessage) -> None:
        self.last_seq += 1
        if stay.seq != self.last_seq:
            what = f"is of message #{stay.seq}, but message #{self.last_seq} must be next"
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
            raise Contradicted(
                stay,
                f"lasts from step {stay.entered_step} to step {left}, but must begin at step "
                f"{step.n} and end no earlier",
            )
        if (left is None) != (stay.reason is None):
            raise Contradicted(stay, f"left at step {left} for the reason {stay.reason}")
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
        stored = self.stored_step(step)
        if step.kind not in (*PROTECTING, Step.Kind.REPAIR, Step.Kind.INDEX):
            stored.check_pins()
        stored.decided().apply_to(self.window)
        expect(step, "count after", step.count_after, self.window.totals.count)
        expect(step, "tokens after", step.tokens_after, self.window.totals.tokens)
        self.check_load(step, step.policy, step.load)
        self.check_oldest(step)
        if step.kind in ORDERING:
            self.ordered_from = step.last_stay
        self.clears += step.kind == Step.Kind.CLEAR
        self.summaries += step.kind in (Step.Kind.COMPACT, Step.Kind.INDEX)

    def stored_step(self, step: Step) -> StoredStep:
        return StoredStep(
            memory=self.memory,
            step=step,
            window=self.window,
            policy_before=self.policy_before,
            policy=self.policy,
            estimator=self.estimator,
            arrived=self.arrived,
            left=self.left,
            before=self.before,
        )

    def check_oldest(self, step: Step) -> None:
        """Check that the column `oldest` of a step fits the window after it."""
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
            raise Contradicted(
                stay, f"begins at step {stay.entered_step}, but this step does not exist"
            )
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
        replayed: dict[str, object] = {
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
        """Compare the stored load of a row with the load of the window. The stored load is null if
        the policy's kind was not installed at that step.
        """
        is_known = load is not None or type(policy) in ALWAYS_INSTALLED
        if policy is None or (can_decide(policy) and is_known):
            expect(row, "load", load, load_of(policy, totals_under(policy, self.window)))

    def check_imported(self) -> None:
        """Check a conversation whose import is unfinished: its steps must be the steps of this
        import.

        All steps are adds, and no message was ignored. A session also has compactions. A branch may
        also have clearings of memory (see `adding.add_copies`).
        """
        imported, steps = self.memory.imported, self.last.n - self.clears - self.summaries
        if imported is not None and not steps == self.history.count <= imported:
            what = f"its unfinished import has stored {imported} messages, but {steps} steps exist"
            raise Contradicted(self.memory, what)


def _needed_of(message: ChatMessage) -> ChatMessage | None:
    """Return a message without the parts that no decision needs."""
    if isinstance(message, ToolExecutionResultMessage):
        return stub_of(message)
    if is_index(message):
        return message
    is_needed = message.has_tool_execution_requests or message.type is MessageType.SYSTEM
    return message if is_needed else None
