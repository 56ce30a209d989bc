"""Answers: why a message left or is still in memory, and whether a phrase is remembered.

The cause comes first, then the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import can_decide
from chatmemory.core.window import Totals
from chatmemory.explain.arithmetic import ReceiptLine, receipt
from chatmemory.explain.captions import caption
from chatmemory.explain.wording import seqs
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.queries import MessageRow, WindowPlace, WindowView


@dataclass(frozen=True)
class Explanation:
    """An answer: the question, its cause in a few words, the rest in a sentence, the sum."""

    question: str
    cause: str
    detail: str
    receipt: tuple[ReceiptLine, ...] = ()

    @property
    def summary(self) -> str:
        return f"{self.cause} {self.detail}".strip()


# Why one message left


def why_left(change: ChangeResult, seq: int) -> Explanation:
    """Why a message left by this change. Raises LookupError if it did not."""
    evicted = next((each for each in change.evicted if each.seq == seq), None)
    if evicted is None:
        raise LookupError(f"#{seq} did not leave at step {change.step}")
    cause, detail = _cause(change, evicted)
    return Explanation(f"Why did #{seq} leave?", cause, detail, receipt(change))


def _cause(change: ChangeResult, evicted: EvictedMessage) -> tuple[str, str]:
    step, seq, because = change.step, evicted.seq, evicted.because_seq
    arrived = change.arrived[0].seq if change.arrived else None
    match evicted.reason:
        case Reason.CAPACITY if seq == arrived:
            return "It was too big on its own.", f"{_no_room(change)}."
        case Reason.CAPACITY:
            oldest = f"#{seq} was the oldest message that could leave"
            return "There was no room.", f"{_no_room(change)}, and {oldest}."
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
            return "Memory was cleared.", f"At step {step} everything left; history keeps it all."
    return "The list was set.", f"At step {step} memory became a list without #{seq}."


def _no_room(change: ChangeResult) -> str:
    """What memory would have needed, without a full stop."""
    policy = change.policy
    if not can_decide(policy) or not change.arrived:
        return f"It left the head of the list at step {change.step}"
    needed = Totals(
        change.before.count + len(change.arrived),
        change.before.tokens + sum(each.tokens for each in change.arrived),
    )
    needs = f"{policy.load(*needed):,} of {policy.limit:,} {policy.unit}"
    return f"When #{change.arrived[0].seq} arrived, memory needed {needs}"


# Why one message is still in


def why_in(window: WindowView[WindowPlace], seq: int) -> Explanation:
    """What keeps a message in memory, and how much room is left before it goes.

    Raises LookupError if it is not in this window.
    """
    position = next((i for i, row in enumerate(window.rows) if row.seq == seq), None)
    if position is None:
        raise LookupError(f"#{seq} is not in memory at step {window.step}")
    row, policy = window.rows[position], window.policy
    question = f"Why is #{seq} still in memory?"
    if not can_decide(policy):
        return Explanation(question, "The client keeps it.", "It decides what memory holds.")
    if position == 0 and row.type is MessageType.SYSTEM:
        return Explanation(
            question,
            "It is the system message.",
            "At the head of memory it stays, until another system message takes its place.",
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
    """How much can be added before the message at this place leaves, in the policy's unit.

    Everything older leaves first; a leading system message stays. A tool result leaves with its
    call.
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


# Does it still remember?


def remembers(
    phrase: str,
    rows: Sequence[MessageRow],
    total: int,
    step: int,
    last: ChangeResult | None = None,
) -> Explanation:
    """Whether a phrase is in memory at a step, and if not, since when and why.

    `rows` are the latest messages that hold it, `total` how many there are, `last` the step at
    which the last of them left.
    """
    question = f"Does it still remember “{phrase}”?"
    times = "once" if total == 1 else f"{total:,} times"
    inside = [row.seq for row in rows if row.is_in_window(step)]
    if not rows:
        return Explanation(question, "It was never said.", "No message holds these words.")
    if inside:
        are = "is" if len(inside) == 1 else "are"
        return Explanation(question, "Yes.", f"Said {times}; {seqs(inside)} {are} in memory.")
    detail = f"Said {times}, and all of it has left."
    if last is None:
        return Explanation(question, "No.", detail)
    gone = [d.seq for d in last.evicted if d.seq in {row.seq for row in rows}]
    return Explanation(
        question,
        "No.",
        f"{detail} The last of it, {seqs(gone)}, left at step {last.step:,}. "
        f"{caption(last).summary}",
        receipt(last),
    )


def without(seqs_gone: Sequence[int], phrase: str) -> str:
    """What a departure means for a phrase that was looked for."""
    return f"Without {seqs(seqs_gone)}, nothing in memory mentions “{phrase}”."
