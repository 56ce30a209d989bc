"""The recall curve: how many recalls are held at every limit, from one pass.

A recall is held under a union of intervals of limits, which may have a gap: a result whose call
left before it arrived stays, where a larger limit keeps the call until both leave together. Of
several mentions the last one decides: it leaves last, and its intervals hold those of the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from chatmemory.core.loads import MOST_ADDS, Interval, evicts_oldest_first
from chatmemory.core.policies import Policy
from chatmemory.core.recall.facts import History, Uses, needs
from chatmemory.core.window import total


@dataclass(frozen=True)
class RecallCurve:
    """The number of recalls that are held at each limit.

    `changes` tells by how much the number changes at a limit. `tried_every` is the distance of the
    limits that were tried; 1 is exact.
    """

    recalls: int
    changes: Mapping[int, int] = field(default_factory=dict)
    tried_every: int = 1

    @cached_property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The limits at which the number of held recalls changes, each with the new number."""
        limits = sorted(limit for limit, change in self.changes.items() if change)
        numbers = accumulate(self.changes[limit] for limit in limits)
        return tuple(zip(limits, numbers, strict=True))

    def held(self, limit: int) -> int:
        """Return how many recalls are held at a limit."""
        found = bisect_right(self.points, limit, key=lambda point: point[0])
        return self.points[found - 1][1] if found else 0

    def smallest_limit(self, share: float = 1.0) -> int | None:
        """Return the smallest limit from which every larger one holds this share of the recalls."""
        needed = share * self.recalls - 1e-9
        if needed <= 0:
            return 1
        below = [i for i, (_, number) in enumerate(self.points) if number < needed]
        first = below[-1] + 1 if below else 0
        return self.points[first][0] if first < len(self.points) else None


def curve_of(
    history: History,
    policy: Policy,
    most_adds: int = MOST_ADDS,
    which: Uses = needs,
    also: Iterable[int] = (),
) -> RecallCurve:
    """Return the recall curve of a history. The limit of `policy` is ignored.

    A policy with options, and a history with several system messages, is replayed over a grid of
    limits so that at most `most_adds` messages are added, and under those of `also`. With `which`,
    the curve counts other uses than those that are needed.
    """
    if is_exact(history, policy):
        return _from_intervals(history, policy, which)
    most = max(1, policy.load(*total(history.entries)))
    step = max(1, -(-most * len(history) // most_adds))
    first = step * -(-policy.least_limit // step)
    grid = range(first, max(first, most) + step, step)
    limits = {*grid, *(limit for limit in also if limit >= policy.least_limit)}
    return _tried_at(history, policy, sorted(limits), step, which)


def is_exact(history: History, policy: Policy) -> bool:
    """Return whether loads tell under which limits a recall is held, so that none is tried."""
    return evicts_oldest_first(policy) and history.loads.have_one_system


def _tried_at(
    history: History, policy: Policy, limits: Iterable[int], tried_every: int, which: Uses
) -> RecallCurve:
    """Return the recall curve by a replay under each of these limits, which must ascend."""
    changes: dict[int, int] = {}
    recalls = held = 0
    for limit in limits:
        left = history.loads.left_at(replace(policy, limit=limit))
        found = [use.is_held for use in which(history, left)]
        recalls = len(found)
        changes[limit] = sum(found) - held
        held = sum(found)
    return RecallCurve(recalls, changes, tried_every)


def _from_intervals(history: History, policy: Policy, which: Uses) -> RecallCurve:
    changes: Counter[int] = Counter()
    recalls = 0
    for intervals in _limits_that_hold(history, policy, which):
        recalls += 1
        for first, stop in intervals:
            changes[max(1, first)] += 1
            if stop is not None:
                changes[max(1, stop)] -= 1
    return RecallCurve(recalls, dict(changes))


def _limits_that_hold(history: History, policy: Policy, which: Uses) -> Iterator[list[Interval]]:
    """Yield, for each use in order, the intervals of limits that hold it.

    Only for histories and policies that `is_exact`.
    """
    loads = history.loads
    for use in which(history, loads.left_at(None)):
        system = loads.systems[use.position]
        if system is not None and use.fact in history.facts[system]:
            yield [(1, None)]
        else:
            yield loads.limits_that_hold(use.mention, use.position - 1, policy)
