"""The conversations of the lab: the chosen ones, with their figures added up."""

from __future__ import annotations

import hashlib
import heapq
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

from django.db.models import Count

from chatmemory.conf import fact_words
from chatmemory.models import Memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import COMPARED_MAX, recall_history
from chatmemory.recall.advice import needs_of
from chatmemory.recall.cost import NO_BOUNDS, CacheRules
from chatmemory.recall.facts import examples_first
from chatmemory.recall.frontier import Figures, TriedPolicies, tried_of_kind
from chatmemory.recall.history import History, needs, uses
from chatmemory.recall.incidents import INCIDENT_RULES
from chatmemory.search.reading import user_labels
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import text_of_policy
from inspector.rooms.lab import models
from inspector.rooms.lab.adoption import decided_by_clients

LISTED = 5
ROWS_AT_ONCE = 500
LIMITS_IN_FORCE = 8  # the most limits in force for which figures are computed
VERSION = 8  # of the figures
BRANCH_LABEL = "from"  # `from: step 43`, see `services.branch`
_PREFIX = re.compile(r"[^\W\d_]+[-_/:.]")


@dataclass(frozen=True)
class FleetQuery:
    """A question to the lab: the conversations, the kind of policy, whose limit is ignored, and the
    cache.

    With `sample`, so many of them are drawn by `seed`. `limit` is the limit in the address.
    """

    which: MemoryFilter
    kind: Policy
    sample: int = 0
    seed: int = 1
    limit: int | None = None
    rules: CacheRules = NO_BOUNDS

    def key(self, tried: TriedPolicies) -> str:
        """Return a digest of the settings that figures depend on."""
        words = fact_words()
        text = f"{text_of_policy(tried.kind)} {tried.kind.estimator} {tried.also} {tried.rules}"
        text = f"{VERSION} {INCIDENT_RULES} {text} {words}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Chosen:
    """A conversation of the lab: the state of its ledger that figures must be of, its policy in
    force, and its group.
    """

    id: str
    state: str
    policy: Policy | None
    group: str

    @property
    def decides(self) -> bool:
        """Whether its policy decides, and not its client."""
        return can_decide(self.policy) and not self.policy.meters_only


@dataclass(frozen=True)
class Measured:
    """A conversation and its figures."""

    chosen: Chosen
    figures: Figures


@dataclass(frozen=True)
class Group:
    """Conversations with one label, or whose ids begin alike. `half` and `nine_in_ten` of them need
    these limits. The conversations of `left_out` need far more than the others.
    """

    name: str
    members: tuple[Measured, ...]
    half: int | None
    nine_in_ten: int | None
    left_out: tuple[Measured, ...] = ()

    @property
    def is_label(self) -> bool:
        return bool(self.name) and not _PREFIX.fullmatch(self.name)

    @property
    def policies(self) -> Counter[Policy | None]:
        return Counter(each.chosen.policy for each in self.members)


@dataclass(frozen=True)
class Loser:
    """A conversation that loses much: the number of lost recalls, and one of them."""

    id: str
    lost: int
    recalls: int
    fact: str = ""
    source: int = 0
    needed: int = 0
    at: int = 0


@dataclass(frozen=True)
class Fleet:
    """The figures of the chosen conversations so far.

    The filter finds `matching` conversations, and the sample has `chosen`.
    """

    matching: int
    chosen: int
    tried: TriedPolicies
    known: tuple[Measured, ...]

    @property
    def is_done(self) -> bool:
        return len(self.known) >= self.chosen

    @property
    def unreadable(self) -> int:
        return sum(each.figures.is_unreadable for each in self.known)

    @cached_property
    def of_clients(self) -> list[Measured]:
        """The conversations that their clients decide, beside others that have a policy."""
        others = [each for each in self.known if not each.chosen.decides]
        return others if len(others) < len(self.known) else []

    @cached_property
    def deciding(self) -> list[Measured]:
        """The others, which are advised."""
        left_out = {each.chosen.id for each in self.of_clients}
        return [each for each in self.known if each.chosen.id not in left_out]

    @cached_property
    def groups(self) -> list[Group]:
        """The conversations by labels and beginnings of ids, the largest group first. They have a
        limit in the unit of the question.
        """
        members: defaultdict[str, list[Measured]] = defaultdict(list)
        for each in self.deciding:
            policy = each.chosen.policy
            if not can_decide(policy) or policy.unit == self.tried.kind.unit:
                members[each.chosen.group].append(each)
        groups = [_group(name, found) for name, found in members.items()]
        return sorted(groups, key=lambda group: (not group.name, -len(group.members), group.name))

    @property
    def of_other_units(self) -> int:
        """The number of conversations with a limit in another unit."""
        return len(self.deciding) - sum(
            len(group.members) + len(group.left_out) for group in self.groups
        )

    @cached_property
    def left_out(self) -> list[Measured]:
        """The conversations that need far more than the others of their group, or of all."""
        far_more = {each.chosen.id for group in self.groups for each in group.left_out}
        of_all = _group("", self.deciding).left_out
        far_more |= {each.chosen.id for each in of_all}
        return [each for each in self.deciding if each.chosen.id in far_more]


def _group(name: str, members: Sequence[Measured]) -> Group:
    weighing = [each for each in members if each.figures.has_weight]
    found = needs_of([each.figures.need for each in weighing])
    left_out = tuple(weighing[place] for place in found.outliers)
    unread = {each.chosen.id for each in left_out}
    remaining = tuple(each for each in members if each.chosen.id not in unread)
    return Group(name, remaining, found.half, found.nine_in_ten, left_out)


def chosen_of(query: FleetQuery) -> tuple[int, list[Chosen]]:
    """Return the number of matching conversations, and the chosen ones by id."""
    rows = query.which.rows().order_by("id")
    matching = list(rows.values_list("id", flat=True))
    if not 0 < query.sample < len(matching):
        return len(matching), [_chosen(row) for row in rows.iterator(ROWS_AT_ONCE)]
    drawn = {*random.Random(query.seed).sample(matching, query.sample)}  # noqa: S311
    found = (row for row in rows.iterator(ROWS_AT_ONCE) if row.id in drawn)
    return len(matching), [_chosen(row) for row in found]


def _chosen(row: Memory) -> Chosen:
    return Chosen(row.id, state_of(row), row.policy, group_of(row))


def state_of(row: Memory) -> str:
    """Return the state of a ledger: the beginning of its head's digest, and its last step."""
    return f"{bytes(row.head or b'').hex()[:32]}:{row.last_step}"


def group_of(row: Memory) -> str:
    """Return the group of a conversation: its first label, else the beginning of its id up to a
    sign; empty if there is none. The label that says at which step a branch began makes no group.
    """
    for name, value in sorted(user_labels(row.labels).items()):
        if not (row.branched_from and name == BRANCH_LABEL):
            return f"{name}:{value}" if value else name
    found = _PREFIX.match(row.id)
    return found[0] if found else ""


def decided_by_clients_in(found: Fleet, groups: Collection[str]) -> int:
    """Return how many conversations of some groups an adoption leaves out."""
    ids = [each.chosen.id for each in found.known if each.chosen.group in groups]
    count: int = Memory.objects.filter(decided_by_clients(), id__in=ids).count()
    return count


def tried_of(query: FleetQuery) -> TriedPolicies:
    """Return the policies of a question. The limits in force and the limit in the address are among
    them.
    """
    rows = query.which.rows().filter(policy_kind=query.kind.kind)
    enforced = rows.exclude(policy_options__has_key="meters_only")
    in_force = Counter(enforced.values_list("policy_limit", flat=True))
    often = [limit for limit, _ in in_force.most_common(LIMITS_IN_FORCE)]
    return tried_of_kind(query.kind, {*often, *([query.limit] if query.limit else [])}, query.rules)


def usual_kind(which: MemoryFilter) -> str:
    """Return the kind of policy that most of these conversations have; empty if none has any."""
    rows = which.rows().filter(policy_kind__isnull=False).order_by()
    kinds = rows.values_list("policy_kind").annotate(count=Count("pk"))
    return str(max(kinds, key=lambda row: (row[1], row[0]), default=("",))[0])


def missing(key: str, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return the conversations without figures of their present state."""
    states = dict(models.Figures.objects.filter(key=key).values_list("memory_id", "state"))
    return [each for each in chosen if states.get(each.id) != each.state]


@one_snapshot()
def fleet(query: FleetQuery) -> Fleet:
    """Return the figures of the chosen conversations so far."""
    matching, chosen = chosen_of(query)
    tried = tried_of(query)
    return Fleet(matching, len(chosen), tried, tuple(_measured(query.key(tried), chosen)))


@one_snapshot()
def losers(tried: TriedPolicies, measured: Sequence[Measured], policy: Policy) -> list[Loser]:
    """Return the conversations that lose most under a policy. Only these are read again, and only a
    part of a very long one.
    """
    place = tried.place_of(policy)
    losing = (
        (each.figures.recalls - each.figures.facts_held_at(*place), each.chosen.id)
        for each in measured
    )
    worst = [id for lost, id in heapq.nlargest(LISTED, losing) if lost]
    histories = (recall_history(id, policy.estimator, latest=COMPARED_MAX) for id in worst)
    return [each for each in map(_loser, worst, histories, repeat(policy)) if each]


def _measured(key: str, chosen: Sequence[Chosen]) -> Iterator[Measured]:
    by_id = {each.id: each for each in chosen}
    rows = models.Figures.objects.filter(key=key).order_by("memory_id")
    for row in rows.iterator(ROWS_AT_ONCE):
        each = by_id.get(row.memory_id)
        if each and each.state == row.state:
            yield Measured(each, Figures.from_dict(row.figures))


def _loser(id: str, history: History, policy: Policy) -> Loser | None:
    """Return the facts that a conversation loses under a policy; None if it loses nothing."""
    found = uses(history, history.loads.departures(policy).of_texts)
    needed = list(needs(history, found))
    lost = [use for use in needed if not use.is_held]
    if not lost:
        return None
    shown = next(examples_first(lost), lost[0])
    source, at = history.numbers[shown.mention], history.numbers[shown.position]
    return Loser(id, len(lost), len(needed), shown.fact, source, at, shown.position)
