"""Misfits: messages that leave in the step that brought them, because nothing can make room."""

from __future__ import annotations

from enum import StrEnum

from chatmemory.core.eviction import Reason
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.transitions import Change, Transition
from chatmemory.core.window import Totals


class Misfit(StrEnum):
    """The cause for which a message cannot stay although all that can leave has left.

    What remains is what a policy never evicts: a leading system message, or nothing. Pinned
    messages do not count: an add that only they leave no room for is refused.
    """

    TOO_BIG = "TOO_BIG"
    TOO_BIG_BESIDE_SYSTEM = "TOO_BIG_BESIDE_SYSTEM"
    SYSTEM_TOO_BIG = "SYSTEM_TOO_BIG"
    SYSTEM_FILLS = "SYSTEM_FILLS"

    @property
    def is_of_system(self) -> bool:
        """Whether the system message leaves no room to any other."""
        return self in (Misfit.SYSTEM_TOO_BIG, Misfit.SYSTEM_FILLS)


def misfit(policy: Policy, remaining: Totals, tokens: int) -> Misfit:
    """Return why a message of `tokens` tokens could not stay beside what remained without it.

    `remaining` leaves out pinned messages.
    """
    if not remaining.count:
        return Misfit.TOO_BIG
    if policy.is_exceeded_by(remaining):
        return Misfit.SYSTEM_TOO_BIG
    if policy.is_exceeded_by(Totals(remaining.count + 1, remaining.tokens)):
        return Misfit.SYSTEM_FILLS
    if policy.is_exceeded_by(Totals(1, tokens)):
        return Misfit.TOO_BIG
    return Misfit.TOO_BIG_BESIDE_SYSTEM


def misfit_in(transition: Transition) -> Misfit | None:
    """Return why an add evicted its own message; None if it did not."""
    if transition.change is not Change.ADD or not can_decide(transition.policy):
        return None
    evictions = transition.evictions
    left = {each.entry.key for each in evictions if each.reason is Reason.CAPACITY}
    arrival = next((entry for entry in transition.arrivals if entry.key in left), None)
    if arrival is None:
        return None
    remaining = transition.after.without(transition.pinned)
    return misfit(transition.policy, remaining, arrival.tokens)
