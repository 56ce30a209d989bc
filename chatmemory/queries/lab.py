"""Many conversations as the lab adds them up: which are chosen, and what is known of them."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from typing import NamedTuple

from django.db.models import Q

from chatmemory.conf import fact_words
from chatmemory.core.estimators import family_named
from chatmemory.core.policies import Policy
from chatmemory.core.recall.facts import examples_first
from chatmemory.core.recall.figures import Figures, Grid, LimitPoint, Sums
from chatmemory.core.recall.history import History, needs
from chatmemory.core.window import Totals
from chatmemory.core.written_policies import measured, text_of_policy
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import KeptIncidents, RecallFigures
from chatmemory.queries.incidents import RULES, incidents
from chatmemory.queries.recall import COMPARED_MAX, recall_history
from chatmemory.queries.searching import MemoryFilter

LISTED = 5
ROWS_AT_ONCE = 500
LIMITS_IN_FORCE = 8  # that have figures of their own


class Chosen(NamedTuple):
    """A conversation of the lab, and the state of its ledger that figures must be of."""

    id: str
    state: str


@dataclass(frozen=True)
class FleetQuery:
    """Which conversations, and under which kind of policy, whose limit is ignored.

    With `sample`, so many of them are drawn by `seed`. `limit` is one that is asked for.
    """

    which: MemoryFilter
    kind: Policy
    sample: int = 0
    seed: int = 1
    limit: int | None = None

    def key(self, grid: Grid) -> str:
        """What figures depend on beside the conversation: kind and options, words and limits."""
        kind, words = self.kind, fact_words()
        text = f"{RULES} {text_of_policy(kind)} {kind.estimator} {words} {grid.also}"
        return hashlib.sha256(f"4 {text}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Loser:
    """A conversation that loses much: how many of its recalls, and one of them by number."""

    id: str
    lost: int
    recalls: int
    fact: str = ""
    said: int = 0
    needed: int = 0
    at: int = 0


@dataclass(frozen=True)
class Repeat:
    """A user who said again what had been forgotten, on the windows as they were."""

    id: str
    fact: str
    said: int
    again: int


@dataclass(frozen=True)
class Fleet:
    """What is known of the chosen conversations so far.

    `matching` are those that the filter finds, `chosen` those of the sample, and `sums` of those
    that are computed. `limits` counts the limits in force of the same kind, if they are enforced.
    """

    matching: int
    chosen: int
    sums: Sums
    points: Sequence[LimitPoint]
    limits: Counter[int] = field(default_factory=Counter)

    @property
    def is_done(self) -> bool:
        return self.sums.count >= self.chosen


@dataclass(frozen=True)
class FleetLists:
    """The conversations that lose most, and users who had to repeat themselves."""

    losers: tuple[Loser, ...] = ()
    repeats: tuple[Repeat, ...] = ()


@dataclass(frozen=True)
class PolicyAdoption:
    """What a policy would change: of `matching` conversations those with another one.

    `over` of them have more in memory than it allows, so that their next add evicts. Of those that
    are `recounted`, because another estimator counted them, that is not known before.
    """

    matching: int
    differing: int
    over: int
    recounted: int


def adopting(which: MemoryFilter, policy: Policy) -> PolicyAdoption:
    """Return what a policy would change. Raises UnknownEstimator."""
    policy = measured(policy)
    differing = over = recounted = 0
    family = family_named(policy.estimator)
    evicts_by_tokens = policy.unit == "tokens" and not policy.meters_only
    for row in having_another(which, policy).iterator(ROWS_AT_ONCE):
        differing += 1
        if evicts_by_tokens and family_named(row.policy_estimator) != family:
            recounted += row.window_count > 0
        elif not policy.meters_only:
            over += policy.is_exceeded_by(Totals(row.window_count, row.window_tokens))
    return PolicyAdoption(which.rows().count(), differing, over, recounted)


def having_another(which: MemoryFilter, policy: Policy) -> MemoryQuerySet:
    """Return the conversations whose policy is another one, by id."""
    same = Q(
        policy_kind=policy.kind,
        policy_limit=policy.limit,
        policy_estimator=policy.estimator,
        policy_options=policy.options,
    )
    rows: MemoryQuerySet = which.rows().exclude(same & Q(policy_kind__isnull=False)).order_by("id")
    return rows


def chosen_of(query: FleetQuery) -> tuple[int, list[Chosen]]:
    """Return how many conversations match, and those that are chosen, by id."""
    rows = query.which.rows().order_by("id").values_list("id", "head", "last_step")
    found = [Chosen(id, state_of(head, step)) for id, head, step in rows]
    if 0 < query.sample < len(found):
        drawn = random.Random(query.seed).sample(found, query.sample)  # noqa: S311
        return len(found), sorted(drawn)
    return len(found), found


def state_of(head: bytes | memoryview | None, last_step: int) -> str:
    """Return the state of a ledger: the beginning of its head's digest, and its last step."""
    return f"{bytes(head or b'').hex()[:32]}:{last_step}"


def grid_of(query: FleetQuery) -> Grid:
    """Return the limits of a question's figures. Those in force and the one asked for are exact."""
    grid = Grid(query.kind.unit)
    often = [limit for limit, _ in _limits_in_force(query).most_common(LIMITS_IN_FORCE)]
    also = {*often, *([query.limit] if query.limit else [])}
    return replace(grid, also=tuple(sorted(limit for limit in also if not grid.has(limit))))


def _limits_in_force(query: FleetQuery) -> Counter[int]:
    rows = query.which.rows().filter(policy_kind=query.kind.kind)
    enforced = rows.exclude(policy_options__has_key="meters_only")
    return Counter(enforced.values_list("policy_limit", flat=True))


def missing(key: str, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return the conversations without figures of their present state."""
    states = dict(RecallFigures.objects.filter(key=key).values_list("memory_id", "state"))
    return [each for each in chosen if states.get(each.id) != each.state]


@one_snapshot()
def fleet(query: FleetQuery) -> Fleet:
    """Return what is known of the chosen conversations so far."""
    matching, chosen = chosen_of(query)
    sums = Sums(grid_of(query))
    for _, figures in _figures(query, chosen):
        sums.add(figures)
    return Fleet(matching, len(chosen), sums, sums.points(), _limits_in_force(query))


@one_snapshot()
def fleet_lists(query: FleetQuery, limit: int) -> FleetLists:
    """Return which conversations lose most under a limit, and some users who repeated themselves.

    Only those are read again, a part of a very long one.
    """
    losing: list[tuple[int, int, str]] = []
    chosen = chosen_of(query)[1]
    for memory_id, figures in _figures(query, chosen):
        if lost := figures.recalls - figures.held_at(limit):
            losing.append((lost, figures.recalls, memory_id))
    policy = replace(query.kind, limit=limit)
    worst = [memory_id for _, _, memory_id in heapq.nlargest(LISTED, losing)]
    histories = (recall_history(id, policy.estimator, latest=COMPARED_MAX) for id in worst)
    losers = map(_loser, worst, histories, repeat(policy))
    repeats = islice(_repeats({each.id for each in chosen}), LISTED)
    return FleetLists(tuple(filter(None, losers)), tuple(repeats))


def _figures(query: FleetQuery, chosen: Sequence[Chosen]) -> Iterator[tuple[str, Figures]]:
    states = dict(chosen)
    key = query.key(grid_of(query))
    rows = RecallFigures.objects.filter(key=key).order_by("memory_id")
    for row in rows.iterator(ROWS_AT_ONCE):
        if states.get(row.memory_id) == row.state:
            yield row.memory_id, Figures.from_dict(row.figures)


def _loser(id: str, history: History, policy: Policy) -> Loser | None:
    """Return what a conversation loses under a policy; None if it loses nothing."""
    needed = list(needs(history, history.loads.left_at(policy)))
    lost = [use for use in needed if not use.is_held]
    if not lost:
        return None
    shown = next(examples_first(lost), lost[0])
    said, at = history.numbers[shown.mention], history.numbers[shown.position]
    return Loser(id, len(lost), len(needed), shown.fact, said, at, shown.position)


def _repeats(chosen: Container[str]) -> Iterator[Repeat]:
    rows = KeptIncidents.objects.filter(forced__gt=0).order_by("memory_id")
    for memory_id in rows.values_list("memory_id", flat=True).iterator(ROWS_AT_ONCE):
        if memory_id in chosen:
            found = incidents(memory_id).incidents
            for each in islice((each for each in found if each.is_forced), 1):
                yield Repeat(memory_id, each.fact, each.shown.said, each.again)
