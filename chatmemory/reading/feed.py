"""Reads the latest evictions in all conversations, and the time of the latest change or erasure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from django.db.models import Case, F, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Left

from chatmemory.messages.message import MessageType
from chatmemory.models import LIVED, AuditEntry, Memory, Stay, Step
from chatmemory.reading.rows import misfits_of
from chatmemory.windows.eviction import IN_PLACE, CannotFit, Reason

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _Start(TypedDict):
        start: str

    _StartedStay = WithAnnotations[Stay, _Start]

STEPS_READ = 1_000  # the latest of all conversations that evicted something
STAYS_READ = 200  # up to so many, the last ones are chosen here, else by the database
TEXT_SIZE = 200
TOGETHER = timedelta(minutes=10)  # evictions of a conversation within this pause are one entry


@dataclass(frozen=True)
class LastLeft:
    """The message that left memory last in a `FeedItem`. `text` is the beginning of its text, and
    `reason` why it left.

    `misfit` is only set if the step that added the message also evicted it. It says why the message
    did not fit.
    """

    seq: int
    type: MessageType
    has_calls: bool
    text: str
    reason: Reason
    misfit: CannotFit | None

    @classmethod
    def of(cls, stay: _StartedStay, misfit: CannotFit | None) -> LastLeft:
        type, reason = MessageType(stay.type), Reason(str(stay.reason))
        return cls(stay.seq, type, stay.has_calls, stay.start, reason, misfit)


@dataclass(frozen=True)
class FeedItem:
    """An entry of the feed: the latest series of adds that evicted messages in one conversation.
    Consecutive adds of the series are at most 10 minutes apart.

    - `count`: the number of messages that left at these adds.
    - `since`, `at`: the times of the first and the last of these adds.
    - `step`: the step number of the last add.
    - `last`: the message with the highest seq among those that left at `step`.
    - `by_client`: whether the client decided what is in memory at `step`.
    """

    memory_id: str
    count: int
    since: datetime
    at: datetime
    step: int
    by_client: bool
    last: LastLeft

    @property
    def moment(self) -> int:
        """The time `at` in microseconds since 1970. The live feed uses this unit."""
        return microseconds(self.at)


class _Leaving(NamedTuple):
    """A step that added a message and evicted others."""

    memory_id: str
    n: int
    at: datetime
    by_client: bool
    evicted: int


def feed(size: int = 12) -> list[FeedItem]:
    """Return one entry for each of the `size` conversations with the latest evictions, newest
    first.

    Only the 1,000 latest steps with evictions are read.
    """
    evicting = evicting_adds().filter(memory__deleted_at=None)
    rows = evicting.order_by("-at", "memory_id", "-n").values_list(*_Leaving._fields)
    runs: dict[str, list[_Leaving]] = {}
    for step in map(_Leaving._make, rows[:STEPS_READ]):
        run = runs.setdefault(step.memory_id, [])
        if not run or run[-1].at - step.at <= TOGETHER:
            run.append(step)
    shown = dict(list(runs.items())[:size])
    last = _ended_last(run[0] for run in shown.values())
    misfits = misfits_of(last.values())
    return [
        FeedItem(
            memory_id,
            count=sum(step.evicted for step in run),
            since=run[-1].at,
            at=run[0].at,
            step=run[0].n,
            by_client=run[0].by_client,
            last=LastLeft.of(stay, misfits.get((memory_id, stay.n))),
        )
        for memory_id, run in shown.items()
        if (stay := last.get(memory_id))
    ]


def _ended_last(steps: Iterable[_Leaving]) -> dict[str, _StartedStay]:
    """Return the newest message that each of these steps evicted, by conversation id. Each has the
    `start` of its text.
    """
    left, amount = Q(), 0
    for step in steps:
        left |= Q(memory_id=step.memory_id, left_step=step.n)
        amount += step.evicted
    if not left:
        return {}
    stays = Stay.objects.exclude(reason__in=IN_PLACE)
    if amount > STAYS_READ:
        newest = stays.filter(left).values("memory_id", "left_step").annotate(last=Max("seq"))
        left = Q()
        for each in newest.order_by():
            left |= Q(memory_id=each["memory_id"], left_step=each["left_step"], seq=each["last"])
    rows = stays.filter(left).annotate(start=Left("message__text", TEXT_SIZE)).order_by("seq")
    return {stay.memory_id: stay for stay in rows}


def newest_change() -> int:
    """Return the time of the latest change of any conversation, in microseconds since 1970; 0 if
    there is no conversation.
    """
    at = Memory.objects.order_by("-updated_at").values_list("updated_at", flat=True).first()
    return microseconds(at) if at else 0


def newest_change_or_erasure() -> int:
    """Return the time of the latest change, deletion or redaction of any conversation, in
    microseconds since 1970; 0 if there is none.
    """
    at = AuditEntry.objects.order_by("-pk").values_list("at", flat=True).first()
    return max(newest_change(), microseconds(at) if at else 0)


def microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (at - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def time_of(moment: int) -> datetime:
    """Return the UTC time that is `moment` microseconds after 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)


def evicting_adds() -> QuerySet[Step]:
    """Return the query for adds that evicted at least as many messages as they added. The column
    `evicted` is the number of evicted messages.

    Adds of imports and branches are left out. The filter includes the condition of the database
    index step_evicting, so that the database can use this index.
    """
    adds = Step.objects.filter(LIVED, kind=Step.Kind.ADD, count_after__lte=F("count_before"))
    return adds.annotate(evicted=F("count_before") + _arrived() - F("count_after"))


def _arrived() -> Case:
    """Return the expression for the number of messages that an add brought: one, or several if the
    client decided.
    """
    before = Step.objects.filter(memory=OuterRef("memory"), n=OuterRef("n") - 1)
    stays = F("last_stay") - Coalesce(Subquery(before.values("last_stay")), 0)
    return Case(When(by_client=True, then=stays), default=1, output_field=IntegerField())
