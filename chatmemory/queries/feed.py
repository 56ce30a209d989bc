"""The latest evictions in all conversations, and the times of the latest change and erasure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Case, F, IntegerField, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import CannotFit
from chatmemory.models import LIVED, AuditEntry, Memory, Stay, Step
from chatmemory.queries.rows import misfits_of


@dataclass(frozen=True)
class FeedItem:
    """A message that recently left the memory of any conversation."""

    memory_id: str
    at: datetime
    step: int
    seq: int
    type: MessageType
    has_calls: bool
    text: str
    reason: Reason
    misfit: CannotFit | None
    by_client: bool

    @property
    def moment(self) -> int:
        """`at` in microseconds since 1970, as the live feed counts."""
        return microseconds(self.at)


def feed(size: int = 12) -> list[FeedItem]:
    """Return the messages that left memory last, the latest first."""
    evicting = evicting_adds().filter(memory__deleted_at=None)
    steps = list(evicting.order_by("-at", "memory_id", "-n")[:size])
    if not steps:
        return []
    step_of = {(row.memory_id, row.n): row for row in steps}
    left = _ended_last(steps, size)
    misfits = misfits_of(left)
    items = [
        FeedItem(
            memory_id=stay.memory_id,
            at=step_of[stay.memory_id, stay.left_step].at,
            step=stay.left_step,
            seq=stay.seq,
            type=MessageType(stay.type),
            has_calls=stay.has_calls,
            text=stay.message.text[:200],
            reason=Reason(str(stay.reason)),
            misfit=misfits.get((stay.memory_id, stay.n)),
            by_client=step_of[stay.memory_id, stay.left_step].by_client,
        )
        for stay in left
        if stay.left_step is not None
    ]
    return sorted(items, key=lambda item: (item.at, item.step, item.seq), reverse=True)[:size]


def _ended_last(steps: Iterable[Any], size: int) -> list[Stay]:
    """Return the stays that the first of some `evicting_adds` ended, up to the one with which they
    are `size`.

    Of an add that evicted very many, these are the latest messages.
    """
    ended, missing = Q(), size
    for step in steps:
        these = Q(memory_id=step.memory_id, left_step=step.n)
        if step.evicted > missing:
            last = Stay.objects.filter(these).order_by("-seq").values_list("n", flat=True)[:size]
            these &= Q(n__in=list(last))
        ended |= these
        missing -= step.evicted
        if missing <= 0:
            break
    return list(Stay.objects.filter(ended).exclude(reason=Reason.MOVED).select_related("message"))


def newest_change() -> int:
    """Return the time of the latest change, in microseconds since 1970; 0 if there is none."""
    at = Memory.objects.order_by("-updated_at").values_list("updated_at", flat=True).first()
    return microseconds(at) if at else 0


def newest_change_or_erasure() -> int:
    """Return that of the latest change or erasure: a deletion leaves no changed row."""
    at = AuditEntry.objects.order_by("-pk").values_list("at", flat=True).first()
    return max(newest_change(), microseconds(at) if at else 0)


def microseconds(at: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def time_of(moment: int) -> datetime:
    """Return the time of microseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)


def evicting_adds() -> QuerySet[Step]:
    """Return the adds that evicted a message, with the number that each has `evicted`. Those by
    which an import or a branch made a conversation are left out.

    The condition is that of the index step_evicting.
    """
    adds = Step.objects.filter(LIVED, kind=Step.Kind.ADD, count_after__lte=F("count_before"))
    return adds.annotate(evicted=F("count_before") + _arrived() - F("count_after"))


def _arrived() -> Case:
    """How many messages an add let in: one, or none where nobody saw what a client added."""
    before = Step.objects.filter(memory=OuterRef("memory"), n=OuterRef("n") - 1)
    stays = F("last_stay") - Coalesce(Subquery(before.values("last_stay")), 0)
    return Case(When(by_client=True, then=stays), default=1, output_field=IntegerField())
