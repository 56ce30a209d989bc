"""Reads the ledger: each step with the messages that came and left, and the steps of the
timeline.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast

from chatmemory import database
from chatmemory.ledger.changes import ChangeResult, totals_before
from chatmemory.ledger.lookup import find_memory, find_step, no_step
from chatmemory.ledger.sql import read_step, rows
from chatmemory.messages.message import TYPES, MessageType
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.rows import (
    StepDetail,
    StepRow,
    misfit_at,
    pinned_at,
    stays_of_messages,
    step_row,
)
from chatmemory.reading.windows import MessageView
from chatmemory.snapshots import one_snapshot
from chatmemory.tables import SqlRow
from chatmemory.windows.eviction import IN_PLACE, REASONS, Eviction, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import stored_policy
from chatmemory.windows.window import NOTHING, SAID, Entry, Totals

if TYPE_CHECKING:
    from chatmemory.reading.rows import EndedStay


class _Departure(NamedTuple):
    """A stay that a step ended. `passed_pins` says whether an older pinned message stayed."""

    n: int
    seq: int
    type: str
    has_calls: bool
    tokens: int
    entered_step: int
    reason: str
    passed_pins: bool


# Every page of a step uses these. The pins repeat the condition of their index.
_ENTERED_AT = """SELECT n, seq, type, has_calls, tokens FROM chatmemory_stay
    WHERE memory_id = %s AND n > %s AND n <= %s ORDER BY n"""
_LEFT_AT = """SELECT n, seq, type, has_calls, tokens, entered_step, reason, EXISTS (
        SELECT 1 FROM chatmemory_stay p WHERE p.memory_id = %s
        AND (p.type = 'SYSTEM' OR p.pinned) AND p.pinned AND p.entered_step <= %s
        AND p.rank < (SELECT MAX(e.rank) FROM chatmemory_stay e
            WHERE e.memory_id = %s AND e.left_step = %s AND e.reason = 'CAPACITY')
        AND COALESCE(p.left_step > %s, TRUE)
    ) FROM chatmemory_stay WHERE memory_id = %s AND left_step = %s ORDER BY rank"""
_LEFT_AROUND = """SELECT
    (SELECT MAX(left_step) FROM chatmemory_stay
        WHERE memory_id = %s AND left_step < %s AND reason NOT IN ('MOVED', 'STUBBED')),
    (SELECT MIN(left_step) FROM chatmemory_stay
        WHERE memory_id = %s AND left_step > %s AND reason NOT IN ('MOVED', 'STUBBED'))"""


# What is kept of ledgers for the next page, while they stay as they are: no texts
KEPT = 128  # outlines, parts and their stays, 0.2 MB each; and changes
KEPT_ENTRIES = 1_000  # of a change
# When a conversation was created, its last step, and the digest of that step, if it has one
LedgerState = tuple[datetime, int, bytes]
_Key = tuple[str, int, LedgerState]
_CHANGES: dict[_Key, ChangeResult] = {}


@one_snapshot()
def step(memory_id: str, n: int) -> StepDetail:
    """Return a step with its change. Raises MemoryNotFound and StepNotFound. There is no step 0."""
    memory = find_memory(memory_id)
    if not 1 <= n <= memory.last_step:
        raise no_step(memory, n, first=1)
    return step_detail(find_step(memory, n))


def step_detail(row: Step, previous: Step | StepPoint | None = None) -> StepDetail:
    """Return the step that is stored in `row`, with its change. `previous` is the step before,
    which is read from the database by default.
    """
    return StepDetail(step_row(row), _change(row, previous))


def shown_detail(memory: Memory, row: Step, previous: StepPoint | None = None) -> StepDetail:
    """Return the step that is stored in `row`, with its change. The change is cached until the
    conversation changes.
    """
    key = memory.pk, row.n, _state_of(memory)
    change = _CHANGES.get(key) or _kept_change(key, _change(row, previous))
    return StepDetail(step_row(row), change)


def shown_change(memory: Memory, n: int) -> ChangeResult:
    """Return the change of step `n`. It is cached until the conversation changes. Raises
    StepNotFound.
    """
    key = memory.pk, n, _state_of(memory)
    return _CHANGES.get(key) or _kept_change(key, _change(find_step(memory, n)))


def _kept_change(key: _Key, change: ChangeResult) -> ChangeResult:
    if len(change.arrived) + len(change.evicted) <= KEPT_ENTRIES:
        while len(_CHANGES) >= KEPT:
            _CHANGES.pop(next(iter(_CHANGES)), None)
        _CHANGES[key] = change
    return change


def _change(row: Step, previous: Step | StepPoint | None = None) -> ChangeResult:
    if previous is None and row.n > 1:
        previous = read_step(row.memory_id, row.n - 1)
    last_seq, last_stay = (previous.last_seq, previous.last_stay) if previous else (0, 0)
    left_at = [*[row.memory_id, row.n] * 2, row.n, row.memory_id, row.n]
    left = [_Departure._make(each) for each in rows(_LEFT_AT, left_at)]
    moved = {each.seq for each in left if each.reason == Reason.MOVED}
    stays = rows(_ENTERED_AT, [row.memory_id, last_stay, row.last_stay])
    arrived = _arrived(row, [stay for stay in stays if stay[1] not in moved])
    pinned = NOTHING
    if any(_is_at_once(row, each) for each in left):
        pinned = pinned_at([row])[row.memory_id, row.n]
    evicted = tuple(_evicted(row, left, arrived, pinned))
    found = step_row(row)
    return ChangeResult(
        kind=found.kind,
        step=row.n,
        policy=found.policy,
        before=totals_before(found.policy, found.before, found.after, arrived, evicted),
        after=found.after,
        policy_before=_policy_before(row, previous),
        seq=arrived[0].seq if len(arrived) == 1 else row.seq,
        arrived=arrived,
        evicted=evicted,
        pinned=pinned if any(each.misfit for each in evicted) else NOTHING,
        passed_pins=any(each.passed_pins for each in left[-1:]),
        by_client=row.by_client,
        replaced=previous.policy if previous and row.kind == Step.Kind.POLICY else None,
        last_seq=last_seq,
    )


def steps(memory_id: str, *, after: int = 0, size: int = 50) -> list[StepRow]:
    """Return at most `size` steps after step `after`, in order. Raises MemoryNotFound."""
    find_memory(memory_id)
    rows = Step.objects.filter(memory_id=memory_id, n__gt=after).order_by("n")[:size]
    return [step_row(row) for row in rows]


def step_at_time(memory_id: str, moment: datetime) -> int:
    """Return the number of the last step at or before a time; 1 if all steps are later, and 0 if
    there are no steps. Raises MemoryNotFound.

    If a clock was set back, several steps can fit, and any of them is returned.
    """
    numbers = range(1, find_memory(memory_id).last_step + 1)
    times = Step.objects.filter(memory_id=memory_id).values_list("at", flat=True)
    return bisect_right(numbers, moment, key=lambda n: times.get(n=n)) or len(numbers[:1])


def evictions_around(memory: Memory, at: int) -> tuple[int | None, int | None]:
    """Return the nearest step before `at` and the nearest after `at` at which a message left
    memory. Each is None if there is no such step.
    """
    return _evictions_around(memory.pk, at, _state_of(memory))


@lru_cache(maxsize=KEPT)
def _evictions_around(memory_id: str, at: int, _: LedgerState) -> tuple[int | None, int | None]:
    ((before, after),) = rows(_LEFT_AROUND, [memory_id, at, memory_id, at])
    return before, after


def _is_at_once(row: Step, left: _Departure) -> bool:
    """Return whether a message left, because it had no room, in the step that added it."""
    is_add = row.kind == Step.Kind.ADD and not row.by_client
    return is_add and left.entered_step == row.n and left.reason == Reason.CAPACITY


def _policy_before(row: Step, previous: Step | StepPoint | None) -> Policy | None:
    """Return the policy by which a step first evicted messages. An add first evicts by the policy
    of the step before. None if the client decided.
    """
    if row.by_client:
        return None
    return previous.policy if previous and row.kind == Step.Kind.ADD else row.policy


def _synthetic(row: Step, seqs: Collection[int]) -> set[int]:
    """Return which of these messages are not in history. Only messages of a list that a client
    sent, or of a compaction, can be.
    """
    if not seqs or (row.kind == Step.Kind.ADD and not row.by_client):
        return set()
    messages = Message.objects.filter(memory_id=row.memory_id, origin=Message.Origin.SYNTHETIC)
    found = messages.filter(seq__range=(min(seqs), max(seqs)))  # a list of seqs could be too long
    return set(found.values_list("seq", flat=True))


def _arrived(row: Step, stays: Sequence[SqlRow]) -> tuple[Entry, ...]:
    """Return the entries of the messages that came with a step."""
    synthetic = _synthetic(row, [seq for _, seq, *_ in stays])
    origins = Message.Origin
    return tuple(
        _entry(n, seq, type, calls, tokens, origins.SYNTHETIC if seq in synthetic else origins.SAID)
        for n, seq, type, calls, tokens in stays
    )


def _entry(n: int, seq: int, type: str, has_calls: bool, tokens: int, origin: str = SAID) -> Entry:
    """Return an entry for a stay. It does not have the message itself."""
    facts = TYPES[type], bool(has_calls), tokens
    return Entry(*facts, key=n, n=n, seq=seq, origin=str(origin))


def _evicted(
    row: Step, left: Iterable[_Departure], arrived: Sequence[Entry], pinned: Totals
) -> Iterator[Eviction]:
    """Yield the evictions of a step, in the order of eviction.

    The message for which another left is not stored, but follows from the step. A tool result left
    with the last tool call before it. An interrupted tool call, or a replaced system message, left
    for the message that came. A covered message left for the summary.
    """
    system = next((each for each in arrived if each.type is MessageType.SYSTEM), None)
    summary = next((each for each in arrived if each.seq == row.seq), None)
    calls: dict[Reason, Entry] = {}
    for each in sorted(left, key=_is_not_interrupted):
        reason, entry = REASONS[each.reason], _entry(*each[:5])
        if each.has_calls:
            calls[reason] = entry
        if reason is not Reason.MOVED:
            is_call = each.has_calls or Reason.INTERRUPTED not in calls
            causes = {
                Reason.ORPHANED: calls.get(Reason.CAPACITY),
                Reason.INTERRUPTED: arrived[0] if is_call and arrived else calls.get(reason),
                Reason.REPLACED: system,
                Reason.SUMMARIZED: summary,
            }
            misfit = misfit_at(row, entry, pinned) if _is_at_once(row, each) else None
            yield Eviction(entry, reason, causes.get(reason), misfit)


def _is_not_interrupted(left: _Departure) -> bool:
    return left.reason != Reason.INTERRUPTED


# The timeline

# The steps around `at` that are read in full. They are the same for a block of steps, so that most
# moves forward or back stay among them. More of them are before `at`, like memory.
PART = 120
BLOCK = 10
BEFORE = 80
OUTLINE = 300
_TOTALS = ("last_seq", "last_stay", "count_after", "tokens_after", "said_count", "history_tokens")
_POLICY = ("policy_kind", "policy_limit", "policy_estimator")


@dataclass
class StepPoint:
    """The totals after a step: `after` has those of memory, and `history` those of the history.

    `policy` is the policy in force. `last_seq` and `last_stay` are the numbers of the last message
    and of the last stay that were added up to this step. Points are cached and shared: do not
    change a point.
    """

    step: int
    kind: str
    policy: Policy | None
    after: Totals
    history: Totals
    last_seq: int = 0
    last_stay: int = 0


class StepPoints(dict[int, StepPoint]):
    """A dict of `StepPoint` objects by step number. The dict is equal only to itself, and hashable.

    While the ledger is unchanged, reads return the same dict again. So `lru_cache` can cache what
    pages compute from the dict.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # a dict has none


@dataclass
class StepSample(StepPoint):
    """A step of the timeline.

    - `seqs`: the seqs of the messages that are new at the step.
    - `arrival`: the new message, if the step has exactly one new message; else None.
    - `left_step`: the last step at which `arrival` left memory; None if it did not leave. Steps
      after the step that the page shows are ignored.
    """

    seqs: range = range(0)
    arrival: MessageView | None = None
    left_step: int | None = None


@dataclass(frozen=True)
class StepSamples:
    """The steps of a timeline.

    - `part`: consecutive steps around the shown step.
    - `outline`: the totals after each step of the conversation, by step number. Of more than 300
      steps, `outline` has only 300, at equal distances.
    - `stays`: all stays of each message that is the only new message of a step in `part`.
    """

    part: tuple[StepSample, ...]
    outline: StepPoints
    stays: Sequence[EndedStay]


def step_samples(memory: Memory, at: int) -> StepSamples:
    """Return the steps around step `at`, and the totals after up to 300 steps of the whole
    conversation. The call takes no longer for a long conversation than for a short one.
    """
    part = part_around(memory.last_step, at)
    state = _state_of(memory)
    points = _points(memory.pk, range(part.start - 1, part.stop), state)
    seqs = [_new_seqs(points.get(n - 1), points[n]) for n in part]
    single = tuple(new[0] for new in seqs if len(new) == 1)
    stays = _stays_of(memory.pk, single, state)
    arrivals = _arrivals(stays, at)
    nothing = None, None
    samples = []
    for n, new in zip(part, seqs, strict=True):
        arrival, left = arrivals.get(new[0], nothing) if len(new) == 1 else nothing
        samples.append(StepSample(**vars(points[n]), seqs=new, arrival=arrival, left_step=left))
    outline = outline_of(memory.last_step)
    some = _points(memory.pk, outline, state) if outline else points
    return StepSamples(tuple(samples), some, stays)


def shown_point(memory: Memory, n: int) -> StepPoint:
    """Return the totals after a step. Raises StepNotFound."""
    point = _points(memory.pk, (n,), _state_of(memory)).get(n)
    if point is None:
        raise no_step(memory, n, first=1)
    return point


def first_step_of(memory: Memory, seq: int) -> int:
    """Return the step at which a stored message first came into memory."""
    return _stays_of(memory.pk, (seq,), _state_of(memory))[0].entered_step


def _state_of(memory: Memory) -> LedgerState:
    return memory.created_at, memory.last_step, bytes(memory.head)


def part_around(steps: int, at: int) -> range:
    """Return the numbers of the steps that the timeline shows in full: up to PART consecutive steps
    around step `at`. If `at` is 0, the range begins with step 1. `steps` is the number of all
    steps.
    """
    begin = max(at - 1, 0) // BLOCK * BLOCK - BEFORE
    first = max(0, min(begin, steps - PART)) + 1
    return range(first, min(steps, first + PART - 1) + 1)


def outline_of(steps: int) -> Sequence[int]:
    """Return the numbers of up to OUTLINE steps at equal distances, the last step included. `steps`
    is the number of all steps.

    Empty for at most PART steps, because the timeline then shows all steps in full.
    """
    if steps <= PART:
        return ()
    count = min(steps, OUTLINE)
    return tuple(i * steps // count for i in range(1, count + 1))


@lru_cache(maxsize=KEPT)
def _points(memory_id: str, numbers: Sequence[int], state: LedgerState) -> StepPoints:
    """Return the points of these steps by number. They are valid while the ledger is in this
    `state`.
    """
    steps = Step.objects.filter(database.in_list("n", numbers), memory_id=memory_id)
    options = Cast("policy_options", TextField())
    policy_of, points = cache(_policy), {}
    for n, kind, *columns in steps.values_list("n", "kind", *_TOTALS, *_POLICY, options):
        last_seq, last_stay, count, tokens, said_count, history_tokens, *policy = columns
        after, history = Totals(count, tokens), Totals(said_count, history_tokens)
        points[n] = StepPoint(n, kind, policy_of(*policy), after, history, last_seq, last_stay)
    return StepPoints(sorted(points.items()))


def _policy(kind: str | None, limit: int, estimator: str, options: str) -> Policy | None:
    return stored_policy(kind, limit, estimator, json.loads(options)) if kind else None


def _new_seqs(before: StepPoint | None, point: StepPoint) -> range:
    """Return the seqs of the messages that are new at a step. `before` is the point of the step
    before, or None at step 1.
    """
    return range((before.last_seq if before else 0) + 1, point.last_seq + 1)


@lru_cache(maxsize=KEPT)
def _stays_of(memory_id: str, seqs: Sequence[int], state: LedgerState) -> Sequence[EndedStay]:
    """Return the stays of these messages. They are valid while the ledger is in this `state`."""
    return stays_of_messages(memory_id, seqs)


def _arrivals(stays: Iterable[Stay], at: int) -> dict[int, tuple[MessageView, int | None]]:
    """Return messages by seq, each with the last step up to `at` at which it left memory, or
    None.
    """
    arrivals: dict[int, tuple[MessageView, int | None]] = {}
    for stay in stays:
        seq, left = stay.seq, stay.left_step
        has_left = left is not None and left <= at and stay.reason not in IN_PLACE
        if has_left or seq not in arrivals:
            shown = seq, TYPES[stay.type], stay.has_calls, stay.tokens
            view = MessageView(*shown, pinned=stay.pinned)
            arrivals[seq] = view, left if has_left else None
    return arrivals
