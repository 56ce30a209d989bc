"""The steps of a conversation for its timeline: a part in full, and all of them in outline."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import Totals
from chatmemory.models import Stay, Step

# The steps that are read in full: always those around `at`, and the same ones for a block of steps,
# so that most steps forward or back stay among them. More of them lie before `at`, like memory.
PART = 120
BLOCK = 10
BEFORE = 80
OUTLINE = 300

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
_STAY = ("seq", "type", "has_calls", "tokens", "left_step", "reason")
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

    @property
    def forgotten(self) -> int:
        """The number of messages that were in memory up to this step and are not any more."""
        return self.last_seq - self.after.count


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


@dataclass(frozen=True)
class StepSamples:
    """A part of the steps without gaps, and points at equal distances from the first to the last.

    The points are empty if the part has all steps.
    """

    part: tuple[StepSample, ...]
    points: tuple[StepPoint, ...] = ()


def step_samples(memory_id: str, steps: int, at: int) -> StepSamples:
    """Return the steps around `at`, and an outline of all `steps`.

    They are read by key in two queries, so that the cost does not depend on their number.
    """
    part, outline = part_around(steps, at), outline_of(steps)
    points = _points(memory_id, {part.start - 1, *part, *outline})
    pairs = [(points.get(n - 1), points[n]) for n in part]
    return StepSamples(
        part=tuple(_samples(memory_id, pairs, at)),
        points=tuple(points[n] for n in outline),
    )


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
    return [i * steps // count for i in range(1, count + 1)]


def _points(memory_id: str, numbers: Collection[int]) -> dict[int, StepPoint]:
    """Return the points of some steps by number. Each policy is made once."""
    steps = Step.objects.filter(memory_id=memory_id, n__in=sorted(numbers))
    rows = steps.values_list(*_TOTALS, *_POLICY, Cast("policy_options", TextField()))
    policy = cache(_policy)
    return {row[0]: _point(row, policy(*row[len(_TOTALS) :])) for row in rows}


def _point(row: Sequence[Any], policy: Policy | None) -> StepPoint:
    step, kind, last_seq, last_stay, count, tokens, said, history = row[: len(_TOTALS)]
    after, so_far = Totals(count, tokens), Totals(said, history)
    return StepPoint(step, kind, policy, after, so_far, last_seq, last_stay)


def _policy(kind: str | None, limit: int | None, estimator: str, options: str) -> Policy | None:
    columns = Step(policy_kind=kind, policy_limit=limit, policy_estimator=estimator)
    columns.policy_options = json.loads(options)
    return columns.policy


def _samples(
    memory_id: str, pairs: Sequence[tuple[StepPoint | None, StepPoint]], at: int
) -> Iterator[StepSample]:
    """Yield steps, each from its point and the point before it, which step 1 has not."""
    seqs = [_new_seqs(*pair) for pair in pairs]
    arrivals = _arrivals(memory_id, [new[0] for new in seqs if len(new) == 1], at)
    for new, (_, point) in zip(seqs, pairs, strict=True):
        arrival = arrivals.get(new[0]) if len(new) == 1 else None
        yield StepSample(**vars(point), seqs=new, arrival=arrival)


def _new_seqs(before: StepPoint | None, point: StepPoint) -> range:
    return range((before.last_seq if before else 0) + 1, point.last_seq + 1)


def _arrivals(memory_id: str, seqs: Sequence[int], at: int) -> dict[int, Arrival]:
    """Return some messages by seq, each with the last step up to `at` at which it left memory."""
    stays = Stay.objects.filter(memory_id=memory_id, seq__in=seqs).order_by("n")
    arrivals: dict[int, Arrival] = {}
    for seq, type, has_calls, tokens, left_step, reason in stays.values_list(*_STAY):
        known = arrivals.get(seq) or Arrival(seq, MessageType(type), has_calls, tokens)
        has_left = left_step is not None and left_step <= at and reason != Reason.MOVED
        arrivals[seq] = replace(known, left_step=left_step) if has_left else known
    return arrivals
