"""Explains why single messages left memory or stay in it: first the cause, then the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from chatmemory.explain.causes import cause_in, cause_of, detail_of, own_choice, why_no_fit
from chatmemory.explain.receipts import ALREADY, Receipt, exceeded, is_ahead, receipt
from chatmemory.explain.wording import (
    at_step,
    capitalized,
    counted,
    decapitalized,
    in_unit,
    is_of_turns,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import named
from chatmemory.reading.clearings import Clearing
from chatmemory.reading.windows import MessageView, WindowView
from chatmemory.recall.index import Index
from chatmemory.windows.eviction import Eviction, Reason, first_of_group
from chatmemory.windows.policies import Policy, has_own_rule
from chatmemory.windows.stored_policies import can_decide


@dataclass(frozen=True)
class Explanation:
    """An answer to a `question`: the `cause` in a short sentence, and the `detail` in further
    sentences. The `receipt` is a sum line by line.
    """

    question: str
    cause: str
    detail: str
    receipt: Receipt = ()

    @property
    def summary(self) -> str:
        return f"{self.cause} {self.detail}".strip()


# Why one message left


def why_left(change: ChangeResult, seq: int, lines: Receipt | None = None) -> Explanation:
    """Explain why a message left by this change. Raises LookupError if the message did not leave.

    `lines` is the receipt of the change, if the caller has already made the receipt.
    """
    evicted = change.eviction_of(seq)
    if evicted is None:
        raise LookupError(f"message #{seq} did not leave memory at step {change.step}")
    cause = cause_in(change, evicted)
    lines = receipt(change) if lines is None else lines
    detail = _detail(change, evicted, lines)
    question = f"Why {'would' if change.is_of_draft else 'did'} {named(seq)} leave?"
    return Explanation(question, cause.sentence_for(change.is_of_draft), detail, lines)


def _detail(change: ChangeResult, evicted: Eviction, lines: Receipt) -> str:
    if evicted.reason is Reason.CAPACITY and not change.by_client:
        return why_no_fit(change, evicted) if evicted.misfit else _no_room(change, evicted, lines)
    if evicted.reason is Reason.TURN and is_of_turns(change.policy):
        return _of_turn(change, evicted)
    return detail_of(change, evicted)


def _of_turn(change: ChangeResult, evicted: Eviction) -> str:
    """Return a sentence that names the user message with which the turn of an evicted message
    began.
    """
    before = takewhile(lambda each: each.seq != evicted.seq, change.evicted)
    users = [each.seq for each in before if each.type is MessageType.USER]
    left = "would leave" if change.is_of_draft else "left"
    turn = f"Its turn began with {named(users[-1])}, which" if users else "The rest of its turn"
    return f"{turn} {left} {at_step(change)}; a turn leaves as a whole."


def _no_room(change: ChangeResult, evicted: Eviction, lines: Receipt) -> str:
    """Return a sentence about how much memory needed when a message left, and why this message was
    chosen.
    """
    seq, policy, would = evicted.seq, change.policy, change.is_of_draft
    over = exceeded(lines, seq)
    which = own_choice(change) or "the oldest message that could leave"
    oldest = f"{named(seq)} {'is' if would else 'was'} {which}"
    if over is None or not can_decide(policy):
        return f"{capitalized(named(seq))} left {at_step(change)}: {oldest}."
    if is_ahead(lines, seq):
        mark = f"{policy.low_mark:,} of {policy.limit:,} {policy.unit}"
        was, trimmed = ("would be", "be") if would else ("was", "was")
        over_limit = f"over its limit{'' if would else f' {at_step(change)}'}"
        return f"Memory {was} {over_limit} and {trimmed} trimmed to {mark}; {oldest}."
    needs = _above_limit(over.amount, policy)
    if over.label.startswith(ALREADY):
        held, arrived = ("would hold", "arrives") if would else ("held", "arrived")
        return f"Memory {held} {needs}, before anything {arrived}, and {oldest}."
    if len(change.arrived) == 1:
        name = named(change.arrived[0].seq)
        if would:
            return f"With {name}, memory would need {needs}, and {oldest}."
        return f"When {name} arrived, memory needed {needs}, and {oldest}."
    return f"The new list needed {needs}, and {oldest}."


# Why one message left, in a few words


def how_it_left(change: ChangeResult, seq: int) -> str:
    """Return when and why a message left, such as `when #43 arrived: 55 tokens over the limit` or
    `when a summary replaced it`.

    If no other message was added, the text is usually only the reason, such as `memory was
    cleared`. Raises LookupError if the message did not leave.
    """
    evicted = change.eviction_of(seq)
    if evicted and evicted.reason is Reason.SUMMARIZED and not change.by_client:
        return "when a summary replaced it"
    arrived = [each.seq for each in change.arrived if each.seq != seq and change.kind == "add"]
    when = f"when {named(arrived[0])} arrived: " if len(arrived) == 1 else ""
    return f"{when}{short_cause(change, seq)}"


def short_cause(change: ChangeResult, seq: int) -> str:
    """Return why a message left, in a few words: `55 tokens over the limit` or `memory was
    cleared`.

    Raises LookupError if the message did not leave.
    """
    evicted = change.eviction_of(seq)
    if evicted is None:
        raise LookupError(f"message #{seq} did not leave memory at step {change.step}")
    is_for_room = evicted.reason.is_for_room and not change.by_client and not evicted.misfit
    line, policy = exceeded(receipt(change), seq), change.policy
    if is_for_room and line and policy:
        return f"{in_unit(line.amount - policy.limit, policy)} over the limit"
    return decapitalized(cause_in(change, evicted).sentence).removesuffix(".")


# Why one tool result is a stub


def why_stub(clearing: Clearing, seq: int, more: str = "") -> Explanation:
    """Explain why a placeholder replaced a tool result, and quote the placeholder. `more` is a
    sentence about how long the placeholder stays.

    Raises LookupError if the change did not clear this result.
    """
    change = clearing.change
    result = change.eviction_of(seq)
    if result is None:
        raise LookupError(f"the tool result #{seq} was not cleared at step {change.step}")
    stub = next(each.tokens for each in change.arrived if each.seq == seq)
    says = f"says “{clearing.stub}”" if clearing.stub else "was erased by a redaction"
    tokens = counted(stub, "token")
    sentences = [
        f"{capitalized(at_step(change))} {_no_room_for(clearing)}.",
        _clears(change.policy),
        f"The placeholder {says}: {tokens} instead of {result.tokens:,}. History keeps the result.",
        more,
    ]
    cause = cause_of(Reason.STUBBED).sentence_for(change.is_of_draft)
    question = f"Why was the result of {named(seq)} cleared?"
    return Explanation(question, cause, " ".join(filter(None, sentences)), receipt(change))


def would_be_stub(seq: int, policy: Policy | None) -> Explanation:
    """Explain that a placeholder would replace a tool result. This is for simulations."""
    cause = cause_of(Reason.STUBBED).sentence_for(is_conditional=True)
    detail = f"{_clears(policy)} History keeps the result."
    return Explanation(f"Would the result of {named(seq)} be cleared?", cause, detail.strip())


def _no_room_for(clearing: Clearing) -> str:
    """Return a sentence about the message that had no room beside the tool results, and how much
    memory needed with it.
    """
    policy, arrival = clearing.change.policy, clearing.arrival
    if arrival is None or not can_decide(policy):
        return "an added message had no room"
    seq, message = arrival
    needs = policy.load(clearing.change.before.plus(message, policy.weigh(message)))
    return f"there was no room for {named(seq)}: memory needed {_above_limit(needs, policy)}"


def _above_limit(load: int, policy: Policy) -> str:
    return f"{in_unit(load, policy)}, more than the limit of {policy.limit:,}"


def _clears(policy: Policy | None) -> str:
    """Return the rule by which a policy clears tool results, as a sentence. Returns "" if the
    policy clears none.
    """
    if not can_decide(policy) or not policy.whole_results:
        return ""
    number = policy.whole_results
    newest = "tool result" if number == 1 else f"{number:,} tool results"
    return f"The policy clears all but the newest {newest} before a message leaves memory."


# Why one message is still in memory


def why_in(
    window: WindowView,
    seq: int,
    is_summary: bool = False,
    clearing: Clearing | None = None,
) -> Explanation:
    """Explain why a message is in memory, and when it leaves, such as `after 85 more tokens`.

    - `is_summary`: whether the message is a summary of a compaction.
    - `clearing`: for a cleared tool result, the change that cleared the result; else None. With
      `clearing`, the explanation says why a placeholder replaced the result.

    Raises LookupError if the message is not in this window.
    """
    position = next((i for i, each in enumerate(window.seqs) if each == seq), None)
    if position is None:
        raise LookupError(f"message #{seq} is not in memory at step {window.step}")
    question = f"Why is {named(seq)} {'still ' if seq > 0 else ''}in memory?"
    if is_summary and window.rows[position].pinned:
        detail = (
            "It stays until another summary replaces it, memory is cleared, or the message list "
            "is replaced."
        )
        return Explanation(question, "It is a summary.", detail)
    cause, detail = _stays_because(window, position)
    return why_stub(clearing, seq, detail) if clearing else Explanation(question, cause, detail)


def why_index(index: Index, seq: int) -> Explanation:
    """Explain a message that is an index: it lists the exact terms of evicted messages."""
    return Explanation(
        f"What is {named(seq)}?",
        "It is the index of messages that left memory.",
        f"It names {counted(index.shown, 'exact term')} of {counted(index.left, 'message')} that "
        "left memory. It stays until another index takes its place, or a message needs its "
        "room.",
    )


def not_in_replay(seq: int, window: WindowView) -> Explanation:
    """Explain that a message would not be in memory if another limit had always been in force."""
    question = f"Would {named(seq)} be in memory?"
    limit = in_unit(window.policy.limit, window.policy) if window.policy else "this limit"
    detail = f"With {limit} from the first message on, memory would not hold it at this step."
    return Explanation(question, "No.", detail)


def _stays_because(window: WindowView, position: int) -> tuple[str, str]:
    """Return why a message is in memory: the cause, and a sentence with details."""
    row, policy = window.rows[position], window.policy
    if policy is None:
        return "The client keeps it.", "The client decides what memory holds."
    if not can_decide(policy):
        detail = f"The policy kind {policy.kind} is not installed: what leaves next is unknown."
        return "Nothing has removed it.", detail
    if policy.meters_only:
        detail = "The policy only measures memory; the client decides what it holds."
        return "The client keeps it.", detail
    if row.pinned:
        detail = "A pinned message leaves only when memory is cleared or set to a list without it."
        return "It is pinned.", detail
    if _is_kept(window, row):
        detail = "It stays in memory until another system message takes its place."
        return "It is the system message.", detail
    if policy.keeps_newest and policy.is_exceeded_by(window.totals):
        return _stays_as_newest(window, policy, row)
    if has_own_rule(type(policy)) and row.seq not in window.next_to_leave:
        return "There is room for it.", "The policy’s own rule chooses which message leaves."
    is_cleared_first = row.seq in window.next_to_clear()
    room = _until_full(window, policy) if is_cleared_first else room_before(window, position)
    when = f"after {room:,} more {policy.unit}" if room > 1 else _at_next(policy)
    if is_cleared_first:
        return "There is room for it.", f"Its result is cleared {when}."
    may = "may leave" if policy.has_window_options or policy.whole_results else "leaves"
    return "There is room for it.", f"It {may} memory {when}."


def _at_next(policy: Policy) -> str:
    return "when the next turn begins" if is_of_turns(policy) else "at the next add"


def _stays_as_newest(window: WindowView, policy: Policy, row: MessageView) -> tuple[str, str]:
    """Return why one of the newest messages is in memory although it exceeds the limit: the cause,
    and a sentence with details.
    """
    newest, is_large = window.rows[-1].seq, policy.is_exceeded_by(policy.total([row]))
    cause = "It is too big for the limit." if is_large else "There is no room for it."
    if row.seq == newest:
        return cause, "It stays while it is the newest message."
    return cause, f"It stays with {named(newest)} while that is the newest message."


def _is_kept(window: WindowView, row: MessageView) -> bool:
    """Return whether a message is the system message that never leaves.

    A system message after other messages can leave with its turn, if the policy removes whole
    turns.
    """
    first = next((each for each in window.rows if not each.pinned), None)
    return row == window.first_system and (row == first or not _keeps_turns(window.policy))


def room_before(window: WindowView, position: int) -> int:
    """Return how much must be added until the message at index `position` leaves, in the unit of
    the policy's limit.

    1 or less means that the message may leave at the next add. If the limit counts turns, it may
    leave when the next turn begins. With options such as `low_water`, the message may stay longer
    than the number says.
    """
    policy = window.policy
    assert can_decide(policy)
    if window.over_limit and policy.has_window_options:
        return 1
    load = policy.load(window.totals)
    first = _first_of_group(window, position)
    system = window.first_system.seq if window.first_system else None
    older = sum(
        policy.weigh(row) for row in window.rows[:first] if not row.pinned and row.seq != system
    )
    return max(_until_full(window, policy), policy.low_mark - load + older + 1)


def _until_full(window: WindowView, policy: Policy) -> int:
    return policy.limit - policy.load(window.totals) + 1


def _first_of_group(window: WindowView, position: int) -> int:
    """Return the position of the message with which this message leaves.

    For a tool result, this is its tool call. If whole turns leave, it is the user message of the
    turn.
    """
    if not _keeps_turns(window.policy):
        return first_of_group(window.rows, position)
    rows = enumerate(window.rows[: position + 1])
    return max((i for i, row in rows if row.type is MessageType.USER), default=0)


def _keeps_turns(policy: Policy | None) -> bool:
    return can_decide(policy) and policy.takes_whole_turns
