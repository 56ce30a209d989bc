"""Chooses the conversations of the lab, and reads their figures."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

from django.db.models import Count

from chatmemory import database
from chatmemory.advice import Measured, Scope
from chatmemory.advice.choosing import at_share
from chatmemory.conf import fact_words
from chatmemory.models import Memory
from chatmemory.patterns import declared_pattern
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import recall_history
from chatmemory.recall.cost import NO_BOUNDS, CacheRules
from chatmemory.recall.facts import examples_first
from chatmemory.recall.frontier import (
    FIGURES_RULES,
    MEASURED_MAX,
    Figures,
    TriedPolicies,
    tried_of_kind,
)
from chatmemory.recall.history import History
from chatmemory.recall.incidents import INCIDENT_RULES
from chatmemory.recall.needs import needs
from chatmemory.search.reading import user_labels
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import text_of_policy
from inspector.rooms.lab import models
from inspector.rooms.lab.figures import kept_figures

LISTED = 5
ROWS_AT_ONCE = 500
OTHERS = "*"  # the group of conversations without a label, whose ids begin like no other
BRANCH_LABEL = "from"  # `from: step 43`, see `branches.branch`
_PREFIX = declared_pattern(r"\A[^\W\d_]+[-_/:.]")


@dataclass(frozen=True)
class FleetQuery:
    """A question to the lab: which conversations, and which kind of policy. `kind` is a policy
    whose limit is ignored.

    - `sample`: how many conversations are drawn at random by `seed`; 0 for all.
    - `limit`: a limit to measure besides the usual limits, or None.
    - `rules`: the rules of the prompt cache.
    - `group`: the name of a group, to measure only its conversations; "" for all.
    """

    which: MemoryFilter
    kind: Policy
    sample: int = 0
    seed: int = 1
    limit: int | None = None
    rules: CacheRules = NO_BOUNDS
    group: str = ""

    def key(self, tried: TriedPolicies) -> str:
        """Return a digest of all settings that the figures of a conversation depend on."""
        words = fact_words()
        text = f"{text_of_policy(tried.kind)} {tried.kind.estimator} {tried.also} {tried.rules}"
        text = f"{FIGURES_RULES} {INCIDENT_RULES} {text} {words}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Chosen:
    """A conversation that the lab measures.

    - `state`: a text that identifies the state of the ledger; see `state_of`. Figures are valid for
      one state only.
    - `policy`: the policy of the conversation; None if it has no policy.
    - `group`: the name of its group; see `group_of`.
    """

    id: str
    state: str
    policy: Policy | None
    group: str

    @property
    def decides(self) -> bool:
        """Whether the policy of the conversation can evict messages. False without a policy, for a
        kind that is not installed, and with the option `meters_only`.
        """
        return can_decide(self.policy) and not self.policy.meters_only

    @property
    def step(self) -> str:
        """The number of the ledger's last step, as text."""
        return self.state.rpartition(":")[2]


class Known(NamedTuple):
    """A chosen conversation with its measured figures."""

    chosen: Chosen
    measured: Measured


@dataclass(frozen=True)
class LossExample:
    """A conversation in which a policy would have lost many facts, with one of these facts.

    - `recalls`: the number of facts needed again.
    - `lost`: how many of these facts would not have been in memory.
    - `fact`: one of the lost facts.
    - `needed`: the number of the message that needed this fact again.
    - `source`: the number of the last message before `needed` that mentioned the fact.
    - `at`: how many measured messages come before the message `needed`.
    """

    id: str
    lost: int
    recalls: int
    fact: str = ""
    source: int = 0
    needed: int = 0
    at: int = 0


@dataclass(frozen=True)
class Fleet:
    """The conversations that the lab measures, with the figures that are computed so far.

    - `matching`: how many conversations the filter finds. With a chosen group, the number of the
      group's conversations to measure.
    - `ids`: the IDs of the conversations to measure: all that match, or a sample.
    - `known`: the conversations that have figures already.
    - `tried`: the policies that are measured.
    """

    matching: int
    ids: Sequence[str]
    tried: TriedPolicies
    known: tuple[Known, ...]

    @property
    def chosen(self) -> int:
        """The number of conversations to measure: all that match, or the sample."""
        return len(self.ids)

    @property
    def is_done(self) -> bool:
        return len(self.known) >= self.chosen

    @cached_property
    def groups(self) -> dict[str, list[Measured]]:
        """The conversations of each group, the largest group first. Conversations without a group
        come last.
        """
        members: defaultdict[str, list[Measured]] = defaultdict(list)
        for each in self.known:
            members[each.chosen.group].append(each.measured)
        order = sorted(members, key=lambda name: (name == OTHERS, -len(members[name]), name))
        return {name: members[name] for name in order}


def is_label(group: str) -> bool:
    """Return whether a group is a label, such as `team:billing`. False for a beginning of IDs, such
    as `acme-`, and for OTHERS.
    """
    return group != OTHERS and not _PREFIX.fullmatch(group)


def needs_of(members: Sequence[Measured], scope: Scope) -> tuple[int | None, int | None]:
    """Return two limits. The first would have held all needed facts in half of the conversations,
    the second in nine of ten.

    Only conversations in which facts were needed count, and only if `scope` does not leave them
    out. If no conversation counts, both limits are None.
    """
    out = {id for ids in scope.left_out.values() for id in ids}
    counted = (each.figures for each in members if each.id not in out)
    needs = sorted(each.need for each in counted if each and each.need is not None)
    return (at_share(needs, 0.5), at_share(needs, 0.9)) if needs else (None, None)


def chosen_of(query: FleetQuery) -> tuple[int, list[Chosen]]:
    """Return the number of matching conversations, and the conversations to measure, sorted by ID:
    all matching conversations, or a random sample.

    If the query has a group, conversations of other groups are left out after the sample is drawn.
    Then the returned number counts only the remaining conversations.
    """
    matching, chosen = _drawn(query)
    if not query.group:
        return matching, chosen
    members = [each for each in chosen if each.group == query.group]
    return len(members), members


def _drawn(query: FleetQuery) -> tuple[int, list[Chosen]]:
    rows = query.which.rows().order_by("id")
    matching = list(rows.values_list("id", flat=True))
    if not 0 < query.sample < len(matching):
        return len(matching), [_chosen(row) for row in rows.iterator(ROWS_AT_ONCE)]
    drawn = sorted(random.Random(query.seed).sample(matching, query.sample))  # noqa: S311
    found: list[Chosen] = []
    for first in range(0, len(drawn), ROWS_AT_ONCE):
        some = database.in_list("id", drawn[first : first + ROWS_AT_ONCE])
        found += map(_chosen, Memory.objects.filter(some).order_by("id"))
    return len(matching), found


def _chosen(row: Memory) -> Chosen:
    return Chosen(row.id, state_of(row), row.policy, group_of(row))


def state_of(row: Memory) -> str:
    """Return a text that identifies the state of a ledger: the beginning of its newest digest, and
    its last step.
    """
    return f"{bytes(row.head or b'').hex()[:32]}:{row.last_step}"


def group_of(row: Memory) -> str:
    """Return the group of a conversation: the label whose name is first in alphabetical order, such
    as `team:billing`. The label that a branch gets automatically does not count.

    Without a label, return the letters with which the ID begins and the separator after them, such
    as `acme-`. If the ID has no such beginning, return OTHERS.
    """
    for name, value in sorted(user_labels(row.labels).items()):
        if not (row.branched_from and name == BRANCH_LABEL):
            return f"{name}:{value}" if value else name
    found = _PREFIX.match(row.id)
    return found[0] if found else OTHERS


def tried_of(query: FleetQuery) -> TriedPolicies:
    """Return the policies to measure for a query. They include policies with the limit of the
    query, if it has one.
    """
    return tried_of_kind(query.kind, {query.limit} if query.limit else (), query.rules)


def usual_kind(which: MemoryFilter) -> str:
    """Return the kind of policy that most of the matching conversations have; "" if none has a
    policy.
    """
    rows = which.rows().filter(policy_kind__isnull=False).order_by()
    kinds = rows.values_list("policy_kind").annotate(count=Count("pk"))
    return str(max(kinds, key=lambda row: (row[1], row[0]), default=("",))[0])


def missing(query: FleetQuery, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return the chosen conversations whose figures for this query must still be computed."""
    return [each for each, found in measured_now(query, chosen).items() if found.figures is None]


@one_snapshot()
def fleet(query: FleetQuery) -> Fleet:
    """Return the chosen conversations, with the figures that are known so far. All figures are read
    in one database snapshot.
    """
    matching, chosen = chosen_of(query)
    found = measured_now(query, chosen).items()
    known = tuple(Known(each, measured) for each, measured in found if measured.figures)
    return Fleet(matching, [each.id for each in chosen], tried_of(query), known)


@one_snapshot()
def loss_examples(measured: Iterable[Measured], policy: Policy) -> list[LossExample]:
    """Return up to five conversations that would lose the most facts under a policy, each with one
    lost fact.

    Only the latest messages of a very long conversation are searched.
    """
    tallies = ((each, each.tally(policy)) for each in measured)
    losing = (
        (each.figures.recalls - tally.held, each.id)
        for each, tally in tallies
        if each.figures is not None and tally is not None
    )
    worst = [id for lost, id in heapq.nlargest(LISTED, losing) if lost]
    histories = (recall_history(id, policy.estimator, latest=MEASURED_MAX) for id in worst)
    return [each for each in map(_loss_example, worst, histories, repeat(policy)) if each]


def measured_now(query: FleetQuery, chosen: Sequence[Chosen]) -> dict[Chosen, Measured]:
    """Return the figures of each chosen conversation that still exists. `figures` is None if no
    valid figures are stored.

    The figures come from the conversation's `KeptCost` row, if this row is up to date and has all
    policies of the query. Otherwise, they come from an earlier computation for the same query,
    unless the conversation has changed since.
    """
    tried = tried_of(query)
    kept = {each.id: each for each in kept_figures([each.id for each in chosen])}
    rows = models.Figures.objects.filter(key=query.key(tried))
    computed = {row.memory_id: row for row in rows.iterator(ROWS_AT_ONCE)}
    found: dict[Chosen, Measured] = {}
    for each in chosen:
        known = kept.get(each.id)
        if known is None:  # deleted meanwhile
            continue
        known = known._replace(group=each.group)
        row = computed.get(each.id)
        if known.state == each.step and answers(known, tried):
            found[each] = known
        elif row is not None and row.state == each.state:
            figures = Figures.from_dict(row.figures)
            found[each] = known._replace(figures=figures, tried=tried)
        else:
            found[each] = known._replace(figures=None, tried=None)
    return found


def answers(known: Measured, tried: TriedPolicies) -> bool:
    """Return whether the stored figures of a conversation have all policies in `tried`."""
    own = known.tried
    if own is None:
        return False
    is_alike = (own.rules, own.kind.estimator) == (tried.rules, tried.kind.estimator)
    return is_alike and not tried.also and set(tried.variants) <= set(own.variants)


def _loss_example(id: str, history: History, policy: Policy) -> LossExample | None:
    """Return the facts that a conversation loses under a policy; None if it loses nothing."""
    needed = list(needs(history, history.loads.departures(policy).of_texts))
    lost = [use for use in needed if not use.is_held]
    if not lost:
        return None
    shown = next(examples_first(lost), lost[0])
    source, at = history.numbers[shown.mention], history.numbers[shown.position]
    return LossExample(id, len(lost), len(needed), shown.fact, source, at, shown.position)
