"""The ledger: the steps, and the messages that arrived and left at them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from chatmemory.core.eviction import REASONS, Reason
from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import NOTHING
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage
from chatmemory.ledger.lookup import find_memory, find_step, no_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.sql import read_step, rows
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.rows import StepDetail, StepRow, misfit_at, pinned_at, step_row
from chatmemory.queries.step_samples import StepPoint


class _Entered(NamedTuple):
    """A stay that a step began."""

    seq: int
    type: str
    has_calls: bool
    tokens: int


class _Left(NamedTuple):
    """A stay that a step ended, and whether an older pinned message stayed."""

    seq: int
    type: str
    has_calls: bool
    tokens: int
    entered_step: int
    reason: str
    passed_pins: bool


# Every page of a step asks for these. The pins have the condition of their index.
_ENTERED_AT = """SELECT seq, type, has_calls, tokens FROM chatmemory_stay
    WHERE memory_id = %s AND n > %s AND n <= %s ORDER BY n"""
_LEFT_AT = """SELECT seq, type, has_calls, tokens, entered_step, reason, EXISTS (
        SELECT 1 FROM chatmemory_stay p WHERE p.memory_id = %s
        AND (p.type = 'SYSTEM' OR p.pinned) AND p.pinned AND p.entered_step <= %s
        AND p.rank < (SELECT MAX(e.rank) FROM chatmemory_stay e
            WHERE e.memory_id = %s AND e.left_step = %s AND e.reason = 'CAPACITY')
        AND (p.left_step IS NULL OR p.left_step > %s)
    ) FROM chatmemory_stay WHERE memory_id = %s AND left_step = %s ORDER BY rank"""
_LEFT_AROUND = """SELECT
    (SELECT MAX(left_step) FROM chatmemory_stay
        WHERE memory_id = %s AND left_step < %s AND reason <> 'MOVED'),
    (SELECT MIN(left_step) FROM chatmemory_stay
        WHERE memory_id = %s AND left_step > %s AND reason <> 'MOVED')"""


@one_snapshot()
def step(memory_id: str, n: int) -> StepDetail:
    """Return a step with its change. Raises MemoryNotFound, and StepNotFound also for step 0."""
    memory = find_memory(memory_id)
    if not 1 <= n <= memory.last_step:
        raise no_step(memory, n, first=1)
    return step_detail(find_step(memory, n))


def step_detail(row: Step, previous: Step | StepPoint | None = None) -> StepDetail:
    """Return the step of a row with its change; the step before it is read if it is not given."""
    if previous is None and row.n > 1:
        previous = read_step(row.memory_id, row.n - 1)
    last_seq, last_stay = (previous.last_seq, previous.last_stay) if previous else (0, 0)
    left = _left_at(row.memory_id, row.n)
    moved = {each.seq for each in left if each.reason == Reason.MOVED}
    entered = _entered_at(row.memory_id, last_stay, row.last_stay)
    arrived = _arrived(row, [each for each in entered if each.seq not in moved], last_seq)
    evicted = tuple(_evicted(row, left, arrived))
    found = step_row(row)
    return StepDetail(
        found,
        ChangeResult(
            kind=found.kind,
            step=row.n,
            policy=found.policy,
            before=found.before,
            after=found.after,
            policy_before=_policy_before(row, previous),
            seq=arrived[0].seq if len(arrived) == 1 else row.seq,
            arrived=arrived,
            evicted=evicted,
            pinned=pinned_at(row) if any(each.misfit for each in evicted) else NOTHING,
            passed_pins=any(each.passed_pins for each in left[-1:]),
            by_client=row.by_client,
            replaced=previous.policy if previous and row.kind == Step.Kind.POLICY else None,
        ),
    )


def _left_at(memory_id: str, n: int) -> list[_Left]:
    """Return what left at a step; each row also tells whether an older pinned message stayed."""
    return [_Left._make(row) for row in rows(_LEFT_AT, [*[memory_id, n] * 2, n, memory_id, n])]


def _entered_at(memory_id: str, stays_before: int, last_stay: int) -> list[_Entered]:
    return [_Entered._make(row) for row in rows(_ENTERED_AT, [memory_id, stays_before, last_stay])]


def steps(memory_id: str, *, after: int = 0, size: int = 50) -> list[StepRow]:
    """Return the steps after step `after`, in order. Raises MemoryNotFound."""
    find_memory(memory_id)
    rows = Step.objects.filter(memory_id=memory_id, n__gt=after).order_by("n")[:size]
    return [step_row(row) for row in rows]


def arrivals_at(memory_id: str, steps: Iterable[int]) -> dict[int, int]:
    """Return the seq of the message that each of these adds added, by step."""
    numbers = Step.objects.filter(memory_id=memory_id, n__in=list(steps), kind=Step.Kind.ADD)
    stays = Stay.objects.filter(
        memory_id=memory_id, n__in=list(numbers.values_list("last_stay", flat=True))
    )
    return dict(stays.values_list("entered_step", "seq"))


def evictions_around(memory_id: str, at: int) -> tuple[int | None, int | None]:
    """Return the nearest steps before and after `at` at which a message left."""
    ((before, after),) = rows(_LEFT_AROUND, [memory_id, at, memory_id, at])
    return before, after


def _policy_before(row: Step, previous: Step | StepPoint | None) -> Policy | None:
    """Return the policy under which an add first trimmed; other changes trim once at most."""
    if row.by_client:
        return None
    return previous.policy if previous and row.kind == Step.Kind.ADD else row.policy


def _synthetic(row: Step, seqs: Collection[int]) -> set[int]:
    """Return the seqs of synthetic messages. Only a list that replaces the window has them."""
    if not seqs or (row.kind == Step.Kind.ADD and not row.by_client):
        return set()
    messages = Message.objects.filter(memory_id=row.memory_id, origin=Message.Origin.SYNTHETIC)
    found = messages.filter(seq__range=(min(seqs), max(seqs)))  # a list of them could be too long
    return set(found.values_list("seq", flat=True))


def _arrived(row: Step, entered: Sequence[_Entered], last_seq: int) -> tuple[ArrivedMessage, ...]:
    """Return the arrivals of a step from its stays."""
    synthetic = _synthetic(row, [each.seq for each in entered])
    origins = Message.Origin.SAID.value, Message.Origin.SYNTHETIC.value
    return tuple(
        ArrivedMessage(
            *(each.seq, TYPES[each.type], each.has_calls, each.tokens),
            origin=origins[each.seq in synthetic],
            is_new=each.seq > last_seq,
        )
        for each in entered
    )


def _evicted(
    row: Step, left: Iterable[_Left], arrived: Iterable[ArrivedMessage]
) -> Iterator[EvictedMessage]:
    """Yield the evictions of a step from its stays, in the order of eviction.

    The cause of a departure is not stored. A result left with the last call before it, and a
    replaced system message was replaced by the one that arrived.
    """
    system = next((each.seq for each in arrived if each.type is MessageType.SYSTEM), None)
    call: int | None = None
    for each in left:
        reason, misfit = REASONS[each.reason], None
        if reason is Reason.CAPACITY:
            call = each.seq if each.has_calls else call
            misfit = misfit_at(row, each.tokens) if each.entered_step == row.n else None
        if reason is not Reason.MOVED:
            because = {Reason.ORPHANED: call, Reason.REPLACED: system}.get(reason)
            yield EvictedMessage(
                *(each.seq, TYPES[each.type], each.has_calls, each.tokens),
                *(reason, because, misfit),
            )
