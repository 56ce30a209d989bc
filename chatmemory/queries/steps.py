"""The ledger: the steps, and the messages that arrived and left at them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db.models import Exists, ExpressionWrapper, Field, Q, QuerySet

from chatmemory.core.eviction import Reason
from chatmemory.core.long_lists import HAS_CALLS, SEQ, TOKENS, TYPE, Columns, LongList
from chatmemory.core.messages import MessageType
from chatmemory.core.misfits import Misfit
from chatmemory.core.policies import Policy
from chatmemory.core.window import NOTHING
from chatmemory.ledger.changes import (
    MISFIT,
    REASON,
    ArrivedMessage,
    ChangeResult,
    arrivals,
    evictions,
)
from chatmemory.ledger.lookup import find_memory, find_step, no_step, step_rows
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.statements import Compiled
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.rows import StepDetail, StepRow, step_row
from chatmemory.queries.stays import misfit_at, pinned_at
from chatmemory.queries.windows import PLACE_COLUMNS

_ENTERED = PLACE_COLUMNS[:4]
_LEFT = (*PLACE_COLUMNS[:5], "reason", "passed_pins")
_ENTERED_STEP, _REASON, _PASSED_PINS = 4, 5, 6
_CAPACITY, _ORPHANED = Reason.CAPACITY.value, Reason.ORPHANED.value
_SYSTEM = MessageType.SYSTEM.value
_REPLACED, _MOVED = Reason.REPLACED.value, Reason.MOVED.value


@one_snapshot()
def step(memory_id: str, n: int) -> StepDetail:
    """Return a step with its change. Raises MemoryNotFound, and StepNotFound also for step 0."""
    memory = find_memory(memory_id)
    if not 1 <= n <= memory.last_step:
        raise no_step(memory, n, first=1)
    return step_detail(find_step(memory, n))


def step_detail(row: Step) -> StepDetail:
    """Return the step of a row with its change."""
    previous = next(iter(step_rows(row.memory_id, row.n - 1)), None)
    last_seq, last_stay = (previous.last_seq, previous.last_stay) if previous else (0, 0)
    left = _left_at(row.memory_id, row.n)
    moved = {each[SEQ] for each in left if each[_REASON] == _MOVED}
    entered = _entered_at(row.memory_id, last_stay, row.last_stay)
    entries = [each for each in entered if each[0] not in moved]
    arrived = arrivals(_arrived(row, entries, last_seq))
    found = step_row(row)
    evicted = evictions(_evicted(row, left, arrived))
    misfits = [columns[MISFIT] for columns in evicted.columns]
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
            pinned=pinned_at(row) if any(misfits) else NOTHING,
            passed_pins=any(each[_PASSED_PINS] for each in left[-1:]),
            by_client=row.by_client,
            replaced=previous.policy if previous and row.kind == Step.Kind.POLICY else None,
        ),
    )


@Compiled
def _left_at(memory_id: str, n: int) -> QuerySet[Stay, Any]:
    """Return what left at a step; each row also tells whether an older pinned message stayed."""
    left = Stay.objects.filter(memory_id=memory_id, left_step=n)
    newest = left.filter(reason=Reason.CAPACITY).order_by("-rank").values("rank")[:1]
    protected = Q(type=MessageType.SYSTEM) | Q(pinned=True)  # the condition of their index
    pins = Stay.objects.filter(protected, memory_id=memory_id, pinned=True, entered_step__lte=n)
    pins = pins.filter(rank__lt=newest).exclude(left_step__lte=n)
    passed = ExpressionWrapper(Exists(pins), Field())  # not converted row by row, see PLACE_COLUMNS
    return left.order_by("rank").annotate(passed_pins=passed).values_list(*_LEFT)


@Compiled
def _entered_at(memory_id: str, stays_before: int, last_stay: int) -> QuerySet[Stay, Any]:
    entered = Stay.objects.filter(memory_id=memory_id, n__gt=stays_before, n__lte=last_stay)
    return entered.order_by("n").values_list(*_ENTERED)


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
    before, after = _left_before(memory_id, at), _left_after(memory_id, at)
    return before[0].left_step if before else None, after[0].left_step if after else None


@Compiled
def _left_before(memory_id: str, at: int) -> QuerySet[Stay, Any]:
    return _left(memory_id).filter(left_step__lt=at).order_by("-left_step")[:1]


@Compiled
def _left_after(memory_id: str, at: int) -> QuerySet[Stay, Any]:
    return _left(memory_id).filter(left_step__gt=at).order_by("left_step")[:1]


def _left(memory_id: str) -> QuerySet[Stay, Any]:
    """Return the steps at which messages left."""
    left = Stay.objects.filter(memory_id=memory_id).exclude(reason=Reason.MOVED)
    return left.values_list("left_step", named=True)


def _policy_before(row: Step, previous: Step | None) -> Policy | None:
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


def _arrived(row: Step, entered: Sequence[Columns], last_seq: int) -> list[Columns]:
    """Return the columns of the arrivals of a step from those of its stays."""
    synthetic = _synthetic(row, [seq for seq, *_ in entered])
    said, injected = Message.Origin.SAID.value, Message.Origin.SYNTHETIC.value
    return [
        (seq, type, calls, tokens, injected if seq in synthetic else said, seq > last_seq)
        for seq, type, calls, tokens in entered
    ]


def _evicted(
    row: Step, left: Sequence[Columns], arrived: LongList[ArrivedMessage]
) -> list[Columns]:
    """Return the columns of a step's evictions from those of its stays, in the order of eviction.

    The cause of a departure is not stored. A result left with the last call before it, and a
    replaced system message was replaced by the one that arrived.
    """
    systems = [columns[SEQ] for columns in arrived.columns if columns[TYPE] == _SYSTEM]
    causes = _calls_of_results(left)
    for i in [i for i, each in enumerate(left) if each[_REASON] == _REPLACED]:
        causes[i] = (systems[0] if systems else None, None)
    for i in [i for i, each in enumerate(left) if each[_ENTERED_STEP] == row.n]:
        if left[i][_REASON] == _CAPACITY:
            causes[i] = (None, misfit_at(row, left[i][TOKENS]))
    usual = {reason: (reason, None, None) for reason in {each[_REASON] for each in left}}
    columns = [each[: TOKENS + 1] + usual[each[_REASON]] for each in left]
    for i, cause in causes.items():
        columns[i] = columns[i][: REASON + 1] + cause
    is_moved = _MOVED in usual
    return [each for each in columns if each[REASON] != _MOVED] if is_moved else columns


def _calls_of_results(left: Sequence[Columns]) -> dict[int, tuple[int | None, Misfit | None]]:
    """Return the calls with which results left, by the position of the result."""
    call: int | None = None
    causes: dict[int, tuple[int | None, Misfit | None]] = {}
    for i in [i for i, each in enumerate(left) if each[HAS_CALLS] or each[_REASON] == _ORPHANED]:
        if left[i][_REASON] == _ORPHANED:
            causes[i] = (call, None)
        elif left[i][_REASON] == _CAPACITY:
            call = left[i][SEQ]
    return causes
