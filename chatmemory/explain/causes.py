"""Why messages leave: one cause for each reason, in a few words and in a sentence.

History, memory, receipts, captions and Why? all take their words from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.texts import named
from chatmemory.core.transitions import CannotFit
from chatmemory.core.window import Totals
from chatmemory.explain.wording import capitalized
from chatmemory.ledger.changes import ChangeResult, EvictedMessage


@dataclass(frozen=True)
class Cause:
    """A cause as a few words, which can follow a step or a comma, and as a sentence.

    `conditional` is the sentence before anything has happened.
    """

    short: str
    sentence: str
    conditional: str = ""

    def told(self, is_conditional: bool) -> str:
        """Return the sentence of what happened, or of what would happen."""
        return (is_conditional and self.conditional) or self.sentence


_CAUSES = {
    Reason.CAPACITY: Cause("capacity", "There was no room.", "There would be no room."),
    Reason.ORPHANED: Cause(
        "left with its call", "Its tool call left.", "Its tool call would leave."
    ),
    Reason.REPLACED: Cause(
        "replaced",
        "Another system message took its place.",
        "Another system message would take its place.",
    ),
    Reason.CLEARED: Cause("cleared", "Memory was cleared."),
    Reason.SET: Cause("list was set", "The list was set."),
    Reason.MOVED: Cause("moved", "It moved."),
    Reason.SUMMARIZED: Cause("summarised", "A summary took its place."),
    Reason.TURN: Cause(
        "rest of a turn", "Its turn had lost its beginning.", "Its turn would lose its beginning."
    ),
}
REPAIRED = Cause("left out by a repair", "A repair left it out.")
_LEFT_OUT = Cause("left out", "The client left it out of its list.")
_MISFITS = {
    CannotFit.TOO_BIG: Cause(
        "too big", "It was too big on its own.", "It would be too big on its own."
    ),
    CannotFit.TOO_BIG_BESIDE_SYSTEM: Cause(
        "too big beside system",
        "It was too big beside the system message.",
        "It would be too big beside the system message.",
    ),
    CannotFit.SYSTEM_TOO_BIG: Cause(
        "system too big",
        "The system message alone is larger than the limit.",
    ),
    CannotFit.SYSTEM_FILLS: Cause(
        "system fills limit",
        "The system message alone fills the limit.",
    ),
}


def cause_of(reason: Reason, misfit: CannotFit | None = None, by_client: bool = False) -> Cause:
    """Return the cause of a reason, or of a message that left in the step that added it.

    What made no room in a change `by_client` is not known: its limit is the client's own.
    """
    if by_client and reason is Reason.CAPACITY:
        return _LEFT_OUT
    return _MISFITS[misfit] if misfit else _CAUSES[reason]


def short_reason(reason: Reason, misfit: CannotFit | None = None, by_client: bool = False) -> str:
    """Return a cause in a few words, without the message that caused it."""
    return cause_of(reason, misfit, by_client).short


def reason_of(evicted: EvictedMessage) -> str:
    """Return a cause in a few words, with the message that caused it."""
    because = evicted.because_seq
    if because and evicted.reason is Reason.ORPHANED:
        return f"left with {named(because)}"
    if because and evicted.reason is Reason.SUMMARIZED:
        return f"summarised by {named(because)}"
    if because and evicted.reason is Reason.REPLACED:
        return f"replaced by {named(because)}"
    return short_reason(evicted.reason, evicted.misfit)


def why_no_fit(change: ChangeResult, message: EvictedMessage) -> str:
    """Return the sum in a sentence.

    Beside what is pinned, a leading system message remains after such an add, or nothing.
    """
    policy, name = change.policy, named(message.seq)
    remaining = change.after.without(change.pinned)
    if not can_decide(policy):
        return ""
    if message.misfit is not None and message.misfit.is_of_system:
        return f"It takes {_of_limit(policy, remaining)}: nothing else can stay."
    if message.misfit is CannotFit.TOO_BIG:
        return f"{capitalized(name)} alone needs {_of_limit(policy, Totals(1, message.tokens))}."
    both = Totals(remaining.count + 1, remaining.tokens + message.tokens)
    return f"With the system message, {name} needs {_of_limit(policy, both)}."


def _of_limit(policy: Policy, totals: Totals) -> str:
    return f"{policy.load(*totals):,} of {policy.limit:,} {policy.unit}"
