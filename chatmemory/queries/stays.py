"""Messages with their stays in the window, and why a message left in the step that added it."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.misfits import Misfit, misfit
from chatmemory.core.policies import can_decide
from chatmemory.core.window import Totals
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.rows import MessageRow, StayRow


def with_stays(memory_id: str, rows: Sequence[Message]) -> tuple[MessageRow, ...]:
    """Return messages with their stays."""
    of_message: dict[int, list[StayRow]] = {row.seq: [] for row in rows}
    found = Stay.objects.filter(memory_id=memory_id, seq__in=list(of_message)).order_by("n")
    stays = list(found) if rows else []
    misfits = _misfits(memory_id, stays)
    for stay in stays:
        of_message[stay.seq].append(_stay_row(stay, misfits.get(stay.n)))
    calling = {stay.seq for stay in stays if stay.has_calls}
    return tuple(_message_row(row, row.seq in calling, of_message[row.seq]) for row in rows)


def misfit_of(stay: Stay, step: Step) -> Misfit | None:
    """Return why a message left in the step that added it; None if the stay is no such case."""
    is_own = stay.left_step == stay.entered_step == step.n and stay.reason == Reason.CAPACITY
    if not is_own or step.kind != Step.Kind.ADD or step.by_client:
        return None
    policy = step.policy
    if not can_decide(policy):
        return None
    return misfit(policy, Totals(step.count_after, step.tokens_after), stay.tokens)


def _misfits(memory_id: str, stays: Sequence[Stay]) -> dict[int, Misfit | None]:
    """Return `misfit_of` the stays that began and ended in one step, by their number."""
    at_once = {stay.n: stay.entered_step for stay in stays if stay.left_step == stay.entered_step}
    if not at_once:
        return {}
    rows = Step.objects.filter(memory_id=memory_id, n__in=set(at_once.values()))
    steps = {row.n: row for row in rows}
    return {s.n: misfit_of(s, steps[s.entered_step]) for s in stays if s.n in at_once}


def _message_row(row: Message, has_calls: bool, stays: Sequence[StayRow]) -> MessageRow:
    return MessageRow(
        memory_id=row.memory_id,
        seq=row.seq,
        type=MessageType(row.type),
        has_calls=has_calls,
        text=row.text,
        payload=row.payload,
        tokens=row.tokens,
        origin=row.origin,
        said_at=row.said_at,
        client_id=row.client_id,
        stays=tuple(stays),
    )


def _stay_row(stay: Stay, misfit: Misfit | None) -> StayRow:
    return StayRow(
        n=stay.n,
        seq=stay.seq,
        entered_step=stay.entered_step,
        left_step=stay.left_step,
        reason=Reason(stay.reason) if stay.reason else None,
        tokens=stay.tokens,
        misfit=misfit,
    )
