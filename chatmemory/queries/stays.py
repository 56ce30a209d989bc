"""Messages with their stays in the window, and why a message left in the step that added it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from django.db.models import OuterRef, Subquery
from django.db.models.lookups import IsNull

from chatmemory import database
from chatmemory.core.eviction import Reason
from chatmemory.core.fitting import CannotFit, why_it_cannot_fit
from chatmemory.core.messages import MessageType
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import NOTHING, Totals
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.rows import MessageRow, StayRow


def with_stays(
    memory_id: str, rows: Sequence[Message], known: Iterable[Stay] = ()
) -> tuple[MessageRow, ...]:
    """Return messages with their stays. Of a message with `known` stays, these are all."""
    of_message: dict[int, list[StayRow]] = {row.seq: [] for row in rows}
    stays = [stay for stay in known if stay.seq in of_message]
    stays += stays_of_messages(memory_id, of_message.keys() - {stay.seq for stay in stays})
    misfits = _misfits(memory_id, stays)
    for stay in stays:
        of_message[stay.seq].append(_stay_row(stay, misfits.get(stay.n)))
    calling = {stay.seq for stay in stays if stay.has_calls}
    return tuple(_message_row(row, row.seq in calling, of_message[row.seq]) for row in rows)


def stays_of_messages(memory_id: str, seqs: Iterable[int]) -> list[Stay]:
    """Return the stays of some messages, in the order in which they began.

    Each has `is_left_out`: a step of a client ended it. For an EXISTS, PostgreSQL may read all
    steps. They are sorted here: asked for an order, SQLite may read all stays of the conversation.
    """
    seqs = list(seqs)
    if not seqs:
        return []
    ends = Step.objects.filter(memory_id=memory_id, n=OuterRef("left_step"), by_client=True)
    stays = Stay.objects.filter(database.in_list("seq", seqs), memory_id=memory_id).annotate(
        is_left_out=IsNull(Subquery(ends.values("n")[:1]), False)
    )
    return sorted(stays, key=attrgetter("n"))


def misfits_of(stays: Iterable[Stay], steps: Iterable[Step]) -> dict[tuple[str, int], CannotFit]:
    """Return why messages left in the step that added them, by conversation and number of the stay.

    Stays that are no such case are left out.
    """
    of_step = {(step.memory_id, step.n): step for step in steps}
    own = [
        (stay, of_step[stay.memory_id, stay.entered_step])
        for stay in stays
        if stay.left_step == stay.entered_step and stay.reason == Reason.CAPACITY
    ]
    own = [(stay, step) for stay, step in own if step.kind == Step.Kind.ADD and not step.by_client]
    pinned = _pinned_at([step for _, step in own if step.count_after])
    found = {}
    for stay, step in own:
        held = pinned.get((step.memory_id, step.n), NOTHING)
        if (cause := _misfit(step, stay.tokens, held)) is not None:
            found[stay.memory_id, stay.n] = cause
    return found


def misfit_at(step: Step, tokens: int) -> CannotFit | None:
    """Return why a message left for want of room in the step that added it.

    None if the step is not an add, or if its policy is not installed.
    """
    if step.kind != Step.Kind.ADD or step.by_client:
        return None
    return _misfit(step, tokens, pinned_at(step))


def _misfit(step: Step, tokens: int, held: Totals) -> CannotFit | None:
    """Return why a message had no room beside what remained, of which `held` is pinned."""
    policy = step.policy
    if not can_decide(policy):
        return None
    remaining = Totals(step.count_after, step.tokens_after).without(held)
    return why_it_cannot_fit(policy, remaining, tokens)


def pinned_at(step: Step) -> Totals:
    """Return what pinned messages held at a step."""
    held = _pinned_at([step] if step.count_after else [])
    return held.get((step.memory_id, step.n), NOTHING)


def _pinned_at(steps: Sequence[Step]) -> dict[tuple[str, int], Totals]:
    """Return what pinned messages held at some steps."""
    held: dict[tuple[str, int], Totals] = {}
    if not steps:
        return held
    pins = list(Stay.objects.filter(memory_id__in={step.memory_id for step in steps}, pinned=True))
    for step in steps:
        tokens = [
            pin.tokens
            for pin in pins
            if pin.memory_id == step.memory_id
            and pin.entered_step <= step.n < (pin.left_step or step.n + 1)
        ]
        held[step.memory_id, step.n] = Totals(len(tokens), sum(tokens))
    return held


def _misfits(memory_id: str, stays: Sequence[Stay]) -> dict[int, CannotFit]:
    """Return `misfits_of` the stays of one conversation, by their number."""
    at_once = {stay.n: stay.entered_step for stay in stays if stay.left_step == stay.entered_step}
    if not at_once:
        return {}
    steps = Step.objects.filter(memory_id=memory_id, n__in=set(at_once.values()))
    found = misfits_of([stay for stay in stays if stay.n in at_once], steps)
    return {n: misfit for (_, n), misfit in found.items()}


def _message_row(row: Message, has_calls: bool, stays: Sequence[StayRow]) -> MessageRow:
    return MessageRow(
        memory_id=row.memory_id,
        seq=row.seq,
        type=MessageType(row.type),
        has_calls=has_calls,
        text=row.text,
        frame=row.frame,
        tokens=row.tokens,
        origin=row.origin,
        said_at=row.said_at,
        client_id=row.client_id,
        stays=tuple(stays),
    )


def _stay_row(stay: Stay, misfit: CannotFit | None) -> StayRow:
    return StayRow(
        n=stay.n,
        seq=stay.seq,
        entered_step=stay.entered_step,
        left_step=stay.left_step,
        reason=Reason(stay.reason) if stay.reason else None,
        tokens=stay.tokens,
        misfit=misfit,
        pinned=stay.pinned,
        is_left_out=stay.is_left_out,  # type: ignore[attr-defined]  # annotated
    )
