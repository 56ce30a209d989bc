"""Messages that leave in the step that brought them, because nothing could make room for them."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.policies import can_decide
from chatmemory.core.window import Totals
from chatmemory.ledger.changes import ChangeResult


@dataclass(frozen=True)
class Misfit:
    """A message that had no room, with the cause in a few words and the sum in a sentence."""

    seq: int
    cause: str
    detail: str


def misfit_of(change: ChangeResult) -> Misfit | None:
    """Return the message that an add evicted at once; None if there is none.

    What remains after such an add is a leading system message or nothing, and it tells the cause.
    """
    policy = change.policy
    evicted = {each.seq for each in change.evicted if each.reason is Reason.CAPACITY}
    if change.kind != "add" or len(change.arrived) != 1 or not can_decide(policy):
        return None
    (message,) = change.arrived
    if message.seq not in evicted:
        return None
    system, unit = policy.load(*change.after), policy.unit
    if system > policy.limit:
        sum_of_system = f"It takes {system:,} of {policy.limit:,} {unit}"
        return Misfit(
            message.seq,
            "the system message alone is larger than the limit",
            f"{sum_of_system}: nothing else can stay.",
        )
    needs = policy.load(*Totals(change.after.count + 1, change.after.tokens + message.tokens))
    sum_of_both = f"{needs:,} of {policy.limit:,} {unit}"
    if change.after.count:
        detail = f"With the system message, #{message.seq} needs {sum_of_both}."
        return Misfit(message.seq, "it was too big beside the system message", detail)
    return Misfit(
        message.seq, "it was too big on its own", f"#{message.seq} alone needs {sum_of_both}."
    )
