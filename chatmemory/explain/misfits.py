"""The sums of messages that leave in the step that brought them."""

from __future__ import annotations

from chatmemory.core.misfits import Misfit
from chatmemory.core.naming import named
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import Totals
from chatmemory.explain.wording import capitalized
from chatmemory.ledger.changes import ChangeResult, EvictedMessage


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
    if message.misfit is Misfit.TOO_BIG:
        return f"{capitalized(name)} alone needs {_of_limit(policy, Totals(1, message.tokens))}."
    both = Totals(remaining.count + 1, remaining.tokens + message.tokens)
    return f"With the system message, {name} needs {_of_limit(policy, both)}."


def _of_limit(policy: Policy, totals: Totals) -> str:
    return f"{policy.load(*totals):,} of {policy.limit:,} {policy.unit}"
