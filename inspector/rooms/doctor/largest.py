"""Finds limits that are smaller than the largest recorded turn, whose beginning then leaves before
its end.

A turn is a user message and all messages up to the next user message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from django.db.models import F

from chatmemory.ledger.windows import stay_entry
from chatmemory.messages.message import MessageType
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.feed import microseconds, time_of
from chatmemory.windows.policies import Policy, has_own_rule
from chatmemory.windows.stored_policies import can_decide

RECORDED = 2_000  # the latest messages, in which turns are looked for


class SizedMessage(NamedTuple):
    """A message of the history: its type, its cost under the policy, and the step that added it."""

    type: str
    cost: int
    step: int


class NeededLimit(NamedTuple):
    """The limit that the largest turn needs with the system message, and the first step at which a
    turn needed more than today's limit.
    """

    limit: int
    step: int


def limit_needed(messages: Iterable[SizedMessage], policy: Policy) -> NeededLimit | None:
    """Return the limit that the largest turn needs; None if today's limit has room for it."""
    system = turn = 0
    found: NeededLimit | None = None
    for each in messages:
        if each.type == MessageType.SYSTEM:
            system = each.cost
            continue
        turn = each.cost if each.type == MessageType.USER else turn + each.cost
        needed = policy.overhead + system + turn
        if needed > max(policy.limit, found.limit if found else 0):
            found = NeededLimit(needed, found.step if found else each.step)
    return found


def needed_by(memory: Memory) -> dict[str, int | None]:
    """Return the columns about the largest recorded turn: the limit that it needs, and the time
    since which today's limit is too small. Both are None if the limit is large enough, or if no
    policy of a common kind decides.
    """
    policy = memory.policy
    nothing: dict[str, int | None] = {"needed_limit": None, "short_at": None}
    if not can_decide(policy) or policy.meters_only or has_own_rule(type(policy)):
        return nothing
    found = limit_needed(_sized_history(memory, policy), policy)
    if found is None:
        return nothing
    at = Step.objects.filter(memory=memory, n=found.step).values_list("at", flat=True).first()
    return {"needed_limit": found.limit, "short_at": microseconds(at) if at else None}


def _sized_history(memory: Memory, policy: Policy) -> Sequence[SizedMessage]:
    rows = Stay.objects.filter(memory=memory).order_by("-n")
    rows = rows.exclude(message__origin=Message.Origin.SYNTHETIC)
    first_stays = {
        stay.seq: SizedMessage(stay.type, policy.weigh(stay_entry(stay)), stay.entered_step)
        for stay in rows[:RECORDED]
    }
    return [first_stays[seq] for seq in sorted(first_stays)]


@dataclass(frozen=True)
class TooSmallLimit:
    """A conversation whose limit is smaller than its largest recorded turn needs."""

    memory_id: str
    policy: Policy
    needed: int
    at: datetime | None
    version: int

    @property
    def raised(self) -> Policy:
        """The policy with the limit that is needed."""
        return replace(self.policy, limit=self.needed)


def short_windows(id_prefix: str = "", most: int = 20_000) -> list[TooSmallLimit]:
    """Return the conversations whose limit is too small, the newest case first."""
    rows = Memory.objects.beginning_with(id_prefix)
    rows = rows.filter(keptdiagnosis__needed_limit__gt=F("policy_limit"))
    rows = rows.select_related("keptdiagnosis").order_by("-keptdiagnosis__short_at", "-id")[:most]
    return [
        TooSmallLimit(
            row.pk,
            row.policy,
            row.keptdiagnosis.needed_limit,
            time_of(row.keptdiagnosis.short_at) if row.keptdiagnosis.short_at else None,
            row.last_step,
        )
        for row in rows
        if row.policy is not None
    ]
