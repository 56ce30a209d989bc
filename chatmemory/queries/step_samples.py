"""The steps of a conversation for its timeline: a part in full, and all of them in outline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from chatmemory import database
from chatmemory.core.eviction import Reason
from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import Totals
from chatmemory.models import Memory, Stay, Step
from chatmemory.queries.rows import stays_of_messages

# The steps that are read in full: always those around `at`, and the same ones for a block of steps,
# so that most steps forward or back stay among them. More of them lie before `at`, like memory.
PART = 120
BLOCK = 10
BEFORE = 80
OUTLINE = 300
KEPT = 128  # outlines, of 0.2 MB each, parts and their stays

_TOTALS = (
    "n",
    "kind",
    "last_seq",
    "last_stay",
    "count_after",
    "tokens_after",
    "said_count",
    "history_tokens",
)
_POLICY = ("policy_kind", "policy_limit", "policy_estimator")


@dataclass(frozen=True)
class StepPoint:
    """The totals of window and history after a step, and the policy in force.

    `last_seq` and `last_stay` are the newest numbers of messages and stays so far.
    """

    step: int
    kind: str
    policy: Policy | None
    after: Totals
    said: Totals
    last_seq: int = 0
    last_stay: int = 0


@dataclass(frozen=True)
class Arrival:
    """The only new message of a step, and the last step up to the playhead at which it left."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    left_step: int | None = None


@dataclass(frozen=True)
class StepSample(StepPoint):
    """A step with the messages that are new at it. If it is one, `arrival` tells more of it."""

    seqs: range = range(0)
    arrival: Arrival | None = None


@dataclass(frozen=True, eq=False)
class StepPoints:
    """The points of some steps by number. They equal only themselves: what is drawn of them can be
    kept for as long as they are.
    """

    by_step: Mapping[int, StepPoint]


NO_POINTS = StepPoints({})


@dataclass(frozen=True)
class StepSamples:
    """A part of the steps without gaps, and an outline: points at equal distances from the first
    step to the last, or none if the part has all steps. `stays` are all those of the arrivals.
    """

    part: tuple[StepSample, ...]
    outline: StepPoints
    stays: Sequence[Stay]


def step_samples(memory: Memory, at: int) -> StepSamples:
    """Return the steps around `at`, and an outline of all.

    They are read by key, so that the cost does not depend on their number.
    """
    part = part_around(memory.last_step, at)
    points = _points(memory, range(part.start - 1, part.stop)).by_step
    seqs = [_new_seqs(points.get(n - 1), points[n]) for n in part]
    single = tuple(new[0] for new in seqs if len(new) == 1)
    stays = _kept_stays(memory.pk, single, bytes(memory.head))
    arrivals = _arrivals(stays, at)
    samples = (
        StepSample(
            **vars(points[n]), seqs=new, arrival=arrivals.get(new[0]) if len(new) == 1 else None
        )
        for n, new in zip(part, seqs, strict=True)
    )
    return StepSamples(tuple(samples), _points(memory, outline_of(memory.last_step)), stays)


def part_around(steps: int, at: int) -> range:
    """Return the steps that are read in full; `at` is among them, unless it is step 0."""
    begin = max(at - 1, 0) // BLOCK * BLOCK - BEFORE
    first = max(0, min(begin, steps - PART)) + 1
    return range(first, min(steps, first + PART - 1) + 1)


def outline_of(steps: int) -> Sequence[int]:
    """Return the numbers of steps at equal distances, the last one among them."""
    if steps <= PART:
        return ()
    count = min(steps, OUTLINE)
    return tuple(i * steps // count for i in range(1, count + 1))


def _points(memory: Memory, numbers: Sequence[int]) -> StepPoints:
    """Return the points of some steps, which are kept until the conversation changes."""
    if not numbers:
        return NO_POINTS
    return _kept_points(memory.pk, numbers, bytes(memory.head))


@lru_cache(maxsize=KEPT)
def _kept_points(memory_id: str, numbers: Sequence[int], head: bytes) -> StepPoints:
    """Return points of the conversation with this head, which is a digest of all its steps."""
    return _read_points(memory_id, numbers)


def _read_points(memory_id: str, numbers: Sequence[int]) -> StepPoints:
    """Read points by number. Each policy is made once."""
    steps = Step.objects.filter(database.in_list("n", numbers), memory_id=memory_id)
    rows = steps.values_list(*_TOTALS, *_POLICY, Cast("policy_options", TextField()))
    policy = cache(_policy)
    points = {row[0]: _point(row, policy(*row[len(_TOTALS) :])) for row in rows}
    return StepPoints({n: points[n] for n in numbers if n in points})


def _point(row: Sequence[Any], policy: Policy | None) -> StepPoint:
    step, kind, last_seq, last_stay, count, tokens, said, history = row[: len(_TOTALS)]
    after, so_far = Totals(count, tokens), Totals(said, history)
    return StepPoint(step, kind, policy, after, so_far, last_seq, last_stay)


def _policy(kind: str | None, limit: int | None, estimator: str, options: str) -> Policy | None:
    columns = Step(policy_kind=kind, policy_limit=limit, policy_estimator=estimator)
    columns.policy_options = json.loads(options)
    return columns.policy


def _new_seqs(before: StepPoint | None, point: StepPoint) -> range:
    """Return the messages that are new at a step; step 1 has no point before it."""
    return range((before.last_seq if before else 0) + 1, point.last_seq + 1)


@lru_cache(maxsize=KEPT)
def _kept_stays(memory_id: str, seqs: Sequence[int], head: bytes) -> Sequence[Stay]:
    """Return the stays of messages of the conversation with this head."""
    return stays_of_messages(memory_id, seqs)


def _arrivals(stays: Iterable[Stay], at: int) -> dict[int, Arrival]:
    """Return messages by seq, each with the last step up to `at` at which it left memory."""
    arrivals: dict[int, Arrival] = {}
    for stay in stays:
        seq, left = stay.seq, stay.left_step
        has_left = left is not None and left <= at and stay.reason != Reason.MOVED
        if has_left or seq not in arrivals:
            left = left if has_left else None
            arrivals[seq] = Arrival(seq, TYPES[stay.type], stay.has_calls, stay.tokens, left)
    return arrivals
