"""Explanations of single messages and phrases: the cause first, then the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import can_decide
from chatmemory.explain.arithmetic import ReceiptLine, receipt
from chatmemory.explain.captions import caption
from chatmemory.explain.misfits import misfit_of
from chatmemory.explain.wording import capitalized, seqs
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.queries import MessageRow, WindowPlace, WindowView


@dataclass(frozen=True)
class Explanation:
    """An answer to a question: the cause in a few words, the detail in a sentence, the receipt."""

    question: str
    cause: str
    detail: str
    receipt: tuple[ReceiptLine, ...] = ()

    @property
    def summary(self) -> str:
        return f"{self.cause} {self.detail}".strip()


# Why one message left


def why_left(change: ChangeResult, seq: int) -> Explanation:
    """Explain why a message left by this change. Raises LookupError if it did not leave."""
    evicted = next((message for message in change.evicted if message.seq == seq), None)
    if evicted is None:
        raise LookupError(f"#{seq} did not leave at step {change.step}")
    cause, detail = _cause(change, evicted)
    return Explanation(f"Why did #{seq} leave?", cause, detail, receipt(change))


def _cause(change: ChangeResult, evicted: EvictedMessage) -> tuple[str, str]:
    step, seq, because = change.step, evicted.seq, evicted.because_seq
    match evicted.reason:
        case Reason.CAPACITY:
            misfit = misfit_of(change)
            if misfit and misfit.seq == seq:
                return f"{capitalized(misfit.cause)}.", misfit.detail
            return "There was no room.", _no_room(change, seq)
        case Reason.ORPHANED:
            rule = "a result stays only as long as its call"
            return (
                "Its tool call left.",
                f"#{seq} answers #{because}, which left at step {step}; {rule}.",
            )
        case Reason.REPLACED:
            return (
                "Another system message took its place.",
                f"#{because} arrived at step {step}, and a memory keeps one system message.",
            )
        case Reason.CLEARED:
            return "Memory was cleared.", f"At step {step} all messages left; history keeps them."
    return "The list was set.", f"At step {step} memory was set to a list without #{seq}."


def _no_room(change: ChangeResult, seq: int) -> str:
    """Say how much memory needed when a message left as the oldest."""
    over, policy = _exceeded(change, seq), change.policy
    oldest = f"#{seq} was the oldest message that could leave"
    if over is None or not can_decide(policy):
        return f"It left the head of the list at step {change.step}."
    needs = f"{over.amount:,} of {policy.limit:,} {policy.unit}"
    if over.label.startswith("Over"):
        return f"Memory held {needs} before anything arrived, and {oldest}."
    if len(change.arrived) == 1:
        return f"When #{change.arrived[0].seq} arrived, memory needed {needs}, and {oldest}."
    return f"The new list needed {needs}, and {oldest}."


def _exceeded(change: ChangeResult, seq: int) -> ReceiptLine | None:
    """Return the line of the receipt that says why a message had to leave; None without one."""
    over = None
    for line in receipt(change):
        if line.kind == "over" and not line.label.startswith("Still"):
            over = line
        if line.kind == "minus" and line.seq == seq:
            return over
    return None


# Why one message is still in memory


def why_in(window: WindowView[WindowPlace], seq: int) -> Explanation:
    """Explain why a message is still in memory, and how much can be added before it leaves.

    Raises LookupError if it is not in this window.
    """
    position = next((i for i, row in enumerate(window.rows) if row.seq == seq), None)
    if position is None:
        raise LookupError(f"#{seq} is not in memory at step {window.step}")
    row, policy = window.rows[position], window.policy
    question = f"Why is #{seq} still in memory?"
    if not can_decide(policy):
        return Explanation(
            question, "The client keeps it.", "The client decides what memory holds."
        )
    if position == 0 and row.type is MessageType.SYSTEM:
        return Explanation(
            question,
            "It is the system message.",
            "It stays at the head of memory until another system message takes its place.",
        )
    room = room_before(window, position)
    return Explanation(
        question,
        "There is room for it.",
        f"It leaves when {room:,} more {policy.unit} arrive."
        if room
        else "It is the next to leave.",
    )


def room_before(window: WindowView[WindowPlace], position: int) -> int:
    """Return how much can be added, in the policy's unit, before the message at a position leaves.

    All older messages except a leading system message leave first, and a tool result leaves with
    its call.
    """
    policy = window.policy
    assert can_decide(policy)
    load = policy.load(*window.totals)
    rows = list(window.rows)
    while position and rows[position].type is MessageType.TOOL_EXECUTION_RESULT:
        position -= 1
        if rows[position].has_calls:
            break
    start = 1 if rows[0].type is MessageType.SYSTEM else 0
    older = sum(policy.cost(row.tokens) for row in rows[start:position])
    return policy.limit - load + older + 1


# Whether a phrase is still in memory


def remembers(
    phrase: str,
    rows: Sequence[MessageRow],
    total: int,
    step: int,
    last: ChangeResult | None = None,
) -> Explanation:
    """Explain whether a phrase is in memory at a step, and if not, when and why it left.

    `rows` are the latest messages that contain it, `total` is the number of all of them, and `last`
    is the change by which the last of them left.
    """
    question = f"Does it still remember “{phrase}”?"
    times = "once" if total == 1 else f"{total:,} times"
    inside = [row.seq for row in rows if row.is_in_window(step)]
    if not rows:
        return Explanation(question, "It was never said.", "No message contains these words.")
    if inside:
        are = "is" if len(inside) == 1 else "are"
        return Explanation(question, "Yes.", f"Said {times}; {seqs(inside)} {are} in memory.")
    detail = f"Said {times}, and all of it has left."
    if last is None:
        return Explanation(question, "No.", detail)
    left = [message.seq for message in last.evicted if message.seq in {row.seq for row in rows}]
    return Explanation(
        question,
        "No.",
        f"{detail} The last of it, {seqs(left)}, left at step {last.step:,}. "
        f"{caption(last).summary}",
        receipt(last),
    )


def without(left: Sequence[int], phrase: str) -> str:
    """Return the consequence of departures for the phrase of a search."""
    return f"Without {seqs(left)}, nothing in memory mentions “{phrase}”."
