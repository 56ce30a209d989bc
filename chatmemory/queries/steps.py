"""The ledger: what each step brought, and what left at it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.conversations import stored_memory, stored_step
from chatmemory.queries.rows import Departure, StepRow, StepView, step_row, with_stays


def step(memory_id: str, n: int) -> StepView:
    """A step with arrivals and departures. Raises MemoryNotFound, StepNotFound."""
    row = stored_step(memory_id, n)
    before = Step.objects.filter(memory_id=memory_id, n=n - 1).values_list("last_stay", flat=True)
    entered = Stay.objects.filter(
        memory_id=memory_id, n__gt=before.first() or 0, n__lte=row.last_stay
    ).order_by("n")
    ended = Stay.objects.filter(memory_id=memory_id, left_step=n).order_by("rank")
    left = list(ended.select_related("message"))
    moved = {stay.seq for stay in left if stay.reason == Reason.MOVED}
    arrived = [stay.message for stay in entered.select_related("message") if stay.seq not in moved]
    departed = [stay for stay in left if stay.reason != Reason.MOVED]
    return StepView(
        step=step_row(row),
        arrivals=with_stays(memory_id, arrived),
        departures=tuple(_departures(departed, arrived)),
        moved=len(moved),
    )


def steps(memory_id: str, *, after: int = 0, size: int = 50) -> list[StepRow]:
    """Steps in order, beginning behind `after`. Raises MemoryNotFound."""
    stored_memory(memory_id)
    rows = Step.objects.filter(memory_id=memory_id, n__gt=after).order_by("n")[:size]
    return [step_row(row) for row in rows]


def arrivals_at(memory_id: str, steps: Iterable[int]) -> dict[int, int]:
    """The seq of the message that each of these adds brought."""
    numbers = Step.objects.filter(memory_id=memory_id, n__in=list(steps), kind=Step.Kind.ADD)
    stays = Stay.objects.filter(
        memory_id=memory_id, n__in=list(numbers.values_list("last_stay", flat=True))
    )
    return dict(stays.values_list("entered_step", "seq"))


def evictions_around(memory_id: str, at: int) -> tuple[int | None, int | None]:
    """The nearest steps at which a message left, before `at` and after it."""
    left = Stay.objects.filter(memory_id=memory_id).exclude(reason=Reason.MOVED)
    before = (
        left.filter(left_step__lt=at).order_by("-left_step").values_list("left_step", flat=True)
    )
    after = left.filter(left_step__gt=at).order_by("left_step").values_list("left_step", flat=True)
    return before.first(), after.first()


def _departures(stays: Sequence[Stay], arrived: Sequence[Message]) -> Iterable[Departure]:
    """By rank, which is the order of eviction; a result names the evicted call before it."""
    call: int | None = None
    system = next((row.seq for row in arrived if row.type == MessageType.SYSTEM), None)
    for stay in stays:
        reason = Reason(str(stay.reason))
        if stay.has_calls:
            call = stay.seq
        because = {Reason.ORPHANED: call, Reason.REPLACED: system}.get(reason)
        yield Departure(
            seq=stay.seq,
            type=MessageType(stay.type),
            has_calls=stay.has_calls,
            tokens=stay.tokens,
            text=stay.message.text,
            reason=reason,
            entered_step=stay.entered_step,
            because_seq=because,
        )
