"""Finds changes of policies and labels, and measures whether these changes helped against problems.

The measure is the number of cases per 100 turns, before and after the change. A case is one
occurrence of a problem in a conversation. The hour of the change does not count.

Steps record changes of policies, but not the values of labels. So a label value counts as new in
the first hour in which a conversation with this value was active. The turns of conversations with
the new value are compared with earlier turns of the tenant's other conversations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from chatmemory.flag import Flag, Turns
from chatmemory.models import Step
from inspector.rooms.hours.clock import HOUR, days_until, hour_of
from inspector.rooms.hours.fleet import (
    Counting,
    Known,
    Spent,
    labels_with_few_values,
    policy_words,
)

DAY = 24 * HOUR
DAYS = 14
LEAST_TURNS, CLOSED_TURNS = 20, 50
QUIET, SHOWN_FOR = 2 * DAY, 7 * DAY


@dataclass(frozen=True)
class Change:
    """A change of the policy or of a label in conversations of a tenant. `at` is the start of the
    hour of the change, in seconds since 1970. If conversations changed at different hours, `at` is
    the first of these hours.

    For a change of policy:

    - `name` is "", and `words` is a text such as `limit 3,000`.
    - `hours` has the hour of the change for each changed conversation, by ID.
    - `before` and `after` are empty.

    For a change of a label:

    - `name` is the label, and `words` is the new value. `hours` is empty.
    - `after` has the IDs of conversations with the new value. Only their turns after `at` count.
    - `before` has the IDs of the tenant's other conversations. Only their turns before `at` count.
    """

    words: str
    at: int
    hours: Mapping[str, int] = field(default_factory=dict)
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    name: str = ""

    @property
    def full(self) -> str:
        """The change in words: `limit 3,000` for a policy, `release 4.2.0` for a label."""
        return f"{self.name} {self.words}".strip()

    def has_changed(self, memory_id: str) -> bool:
        return memory_id in self.hours or memory_id in self.after

    def concerns(self, memory_id: str) -> bool:
        """Return whether a conversation counts when the effect of the change is measured."""
        return self.has_changed(memory_id) or memory_id in self.before


def changes_of(known: Mapping[str, Known], rows: Sequence[Spent], now: datetime) -> list[Change]:
    """Return the changes of policies and labels in the last 14 days, the newest first. `known` has
    the properties of each conversation, by ID. `rows` are the hourly figures of these
    conversations.
    """
    since = days_until(now, DAYS)[0]
    found = [*_of_policies(known, since), *_of_labels(known, rows, since)]
    return sorted(found, key=lambda each: (-each.at, each.words))


def _of_policies(known: Mapping[str, Known], since: int) -> Iterable[Change]:
    steps = Step.objects.filter(
        kind=Step.Kind.POLICY, at__gte=datetime.fromtimestamp(since).astimezone()
    ).order_by("at")
    columns = ("memory_id", "at", "policy_kind", "policy_limit", "policy_estimator")
    newest: dict[str, tuple[str, int]] = {}
    for id, at, kind, limit, estimator, options in steps.values_list(*columns, "policy_options"):
        if id in known:
            newest[id] = policy_words(kind, limit, estimator, options), hour_of(at)
    alike: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for id, (words, hour) in newest.items():
        alike[known[id].tenant, words][id] = hour
    for (_, words), hours in alike.items():
        yield Change(words, min(hours.values()), hours)


def _of_labels(known: Mapping[str, Known], rows: Sequence[Spent], since: int) -> Iterable[Change]:
    """Yield a change for each label value that was new in a tenant after the hour `since`."""
    name = next(iter(labels_with_few_values(known.values())), "")
    if not name:
        return
    first: dict[tuple[str, str], int] = {}
    is_old = {
        (each.tenant, each.labels.get(name, "")) for each in known.values() if each.created < since
    }
    having: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    tenants: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        its = known[row.memory_id]
        tenant, value = its.tenant, its.labels.get(name)
        tenants[tenant].add(row.memory_id)
        if value:
            key = tenant, value
            first[key] = min(row.hour, first.get(key, row.hour))
            having[key].add(row.memory_id)
    for (tenant, value), at in first.items():
        if (tenant, value) not in is_old:
            own = having[tenant, value]
            yield Change(value, at, {}, frozenset(tenants[tenant] - own), frozenset(own), name)


# Did it help?


@dataclass(frozen=True)
class Side:
    """The numbers of cases and turns before a change, or after a change. `cases` counts how often a
    problem began. `turns` counts the turns in which the problem could have begun.
    """

    cases: int = 0
    turns: int = 0

    @property
    def rate(self) -> float:
        """The cases per 100 turns; 0 without turns."""
        return 100 * self.cases / self.turns if self.turns else 0.0


@dataclass(frozen=True)
class Effect:
    """The effect of a change on a problem: how often the problem began before and after the change.

    `time_before` and `time_after` are the lengths of both periods in seconds.
    """

    change: Change
    before: Side
    after: Side
    time_before: int
    time_after: int

    @property
    def is_known(self) -> bool:
        is_long = min(self.time_before, self.time_after) >= DAY
        return is_long and min(self.before.turns, self.after.turns) >= LEAST_TURNS


def could_have(row: Spent, flag: Flag) -> int:
    """Return in how many turns of an hour (`row`) the problem of a flag could have begun.

    For most flags, these are all turns of the hour. For a problem that evictions cause, these are
    only the turns after the first eviction. For a problem that compactions cause, these are only
    the turns after the first compaction.
    """
    turns = flag.cases.past.turns if flag.cases.past else Turns.ALL
    if turns is Turns.EVICTED:
        return row.after_eviction
    return row.after_compaction if turns is Turns.COMPACTED else row.turns


def effect_of(
    change: Change, flag: Flag, rows: Iterable[Spent], counting: Counting, now: datetime
) -> Effect:
    """Return how often the problem of a flag began before and after a change.

    `rows` are the hourly figures of the conversations that the change concerns. `counting` leaves
    out cases that no longer count, such as those of a provider that is not in use.
    """
    sums = {False: [0, 0], True: [0, 0]}
    first = change.at
    for row in rows:
        is_after = _is_after(change, row)
        if is_after is None:
            continue
        sums[is_after][0] += counting.number(row, flag)
        sums[is_after][1] += could_have(row, flag)
        first = min(first, row.hour)
    before, after = (Side(*sums[each]) for each in (False, True))
    return Effect(change, before, after, change.at - first, int(now.timestamp()) - change.at - HOUR)


def _is_after(change: Change, row: Spent) -> bool | None:
    """Return True for an hour after the change, False for an hour before, and None for an hour that
    is not compared.
    """
    at = change.hours.get(row.memory_id)
    if at is None:
        at = change.at
        if row.memory_id in change.before:
            return False if row.hour < at else None
        return True if row.memory_id in change.after and row.hour > at else None
    return None if row.hour == at else row.hour > at


@dataclass(frozen=True)
class Closing:
    """Whether a problem ended after a change.

    - `at`: the time from which the problem counts as ended, in seconds since 1970. None if the
      problem has not ended.
    - `came_back`: whether the problem once counted as ended, and a new case began later.
    - `last`: the hour of the last case after the change. If no case began after the change, the
      hour of the change.
    """

    at: int | None
    came_back: bool
    last: int


def closing_of(
    change: Change, flag: Flag, rows: Iterable[Spent], counting: Counting, now: datetime
) -> Closing:
    """Return whether and when the problem of a flag ended after a change, and whether the problem
    came back.

    A problem has ended if no new case began for at least 2 days and at least 50 turns. Only turns
    in which the problem could have begun count. Each new case in `rows` starts the count again.
    """
    last, turns, came_back = change.at, 0, False
    closed: int | None = None
    for row in sorted((each for each in rows if each.hour > change.at), key=lambda row: row.hour):
        closed = closed or _closed_by(row.hour, last, turns)
        if counting.number(row, flag):
            came_back = came_back or closed is not None
            closed, last, turns = None, row.hour, 0
        elif _is_after(change, row):
            turns += could_have(row, flag)
    return Closing(closed or _closed_by(int(now.timestamp()), last, turns), came_back, last)


def _closed_by(hour: int, last: int, turns: int) -> int | None:
    return hour if turns >= CLOSED_TURNS and hour - last >= QUIET else None
