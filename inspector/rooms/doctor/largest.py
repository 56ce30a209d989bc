"""Finds limits that are smaller than the largest turn in the newest messages of the history. The
beginning of such a turn leaves memory before the turn ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import F

from chatmemory.ledger.windows import stay_entry
from chatmemory.messages.message import MessageType
from chatmemory.models import PROTECTED, Memory, Message, Stay, Step
from chatmemory.reading.feed import microseconds, time_of
from chatmemory.recall.frontier import needed_limits
from chatmemory.windows.policies import Policy, has_own_rule
from chatmemory.windows.stored_policies import can_decide

RECORDED = 2_000  # the latest messages, in which turns are looked for


def needed_by(memory: Memory) -> dict[str, int | None]:
    """Return the columns `needed_limit` and `short_at` of a conversation's stored diagnosis.

    - `needed_limit` is the smallest limit with room for the system message and the largest turn.
      Turns are searched in the newest 2,000 messages of the history.
    - `short_at` is the time since which the limit is too small, in microseconds since 1970.

    Both are None if the limit is large enough, or if the conversation's policy does not evict the
    oldest messages.
    """
    policy = memory.policy
    nothing: dict[str, int | None] = {"needed_limit": None, "short_at": None}
    if not can_decide(policy) or policy.meters_only or has_own_rule(type(policy)):
        return nothing
    stays = _first_stays(memory)
    limits = needed_limits(map(stay_entry, stays), policy)
    pairs = zip(stays, limits, strict=True)
    short = [(limit, stay.entered_step) for stay, limit in pairs if limit > policy.limit]
    if not short:
        return nothing
    at = Step.objects.filter(memory=memory, n=short[0][1]).values_list("at", flat=True).first()
    return {"needed_limit": max(short)[0], "short_at": microseconds(at) if at else None}


def _first_stays(memory: Memory) -> list[Stay]:
    """Return the first stay of each of the newest messages, in the order of the history. The first
    item is the system message before them, if there is one.
    """
    rows = Stay.objects.filter(memory=memory).order_by("-n")
    rows = rows.exclude(message__origin=Message.Origin.SYNTHETIC)
    newest = list(rows[:RECORDED])
    if len(newest) == RECORDED:
        protected = rows.filter(PROTECTED, n__lt=newest[-1].n)
        newest += protected.filter(type=MessageType.SYSTEM)[:1]
    found = {stay.seq: stay for stay in newest}
    return [found[seq] for seq in sorted(found)]


@dataclass(frozen=True)
class TooSmallLimit:
    """A conversation whose limit is too small for the largest turn in the newest 2,000 messages of
    its history.

    - `needed` is the limit that holds this turn and the system message.
    - `at` is the time since which the limit is too small; None if unknown.
    - `version` is the number of the conversation's newest step.
    """

    memory_id: str
    policy: Policy
    needed: int
    at: datetime | None
    version: int

    @property
    def raised(self) -> Policy:
        """The conversation's policy with the limit that its largest turn needs."""
        return replace(self.policy, limit=self.needed)


def short_windows(id_prefix: str = "", most: int = 20_000) -> list[TooSmallLimit]:
    """Return up to `most` conversations whose limit is too small for their largest turn. They are
    sorted by the time `at`, the latest first.
    """
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
