"""The figures of groups by hour and by day, which are kept ready for the first screen.

For each group and each column: turns, the medians of tokens and cost a turn over the conversations
with an answer in it, and the cases of each flag. One huge conversation changes no median.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from statistics import median
from time import monotonic, process_time
from typing import Any

from django.utils import timezone

from chatmemory import database
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds, time_of
from inspector.rooms.hours.changes import Change, changes_of, newest_change_of
from inspector.rooms.hours.clock import days_until, hour_of, hours_until
from inspector.rooms.hours.facets import facets_of
from inspector.rooms.hours.fleet import (
    Counting,
    Known,
    Spent,
    counted_flags,
    grouping,
    known_of,
    labels_with_few_values,
    spent,
    tenant_of,
    time_left,
    untimed,
)
from inspector.rooms.hours.models import KeptFigures, KeptHours
from inspector.rooms.hours.telling import Telling, told

RULES = 2  # raise it with each change of the figures
DAYS, HOURS = 14, 24
SHOWN = 6
TENANT = "tenant"
EVERYTHING = "\0all"
LEAST_TURNS, FROM = 20, 0.15


@dataclass
class Column:
    """A column of a group: an hour or a day. `of_each` are the turns, the tokens and the cost of
    each conversation.
    """

    turns: int = 0
    counted: int = 0
    cases: dict[str, int] = field(default_factory=dict)
    of_each: dict[str, list[int]] = field(default_factory=dict)

    def add(self, row: Spent, cases: dict[str, int]) -> None:
        self.turns += row.turns
        self.counted += row.is_counted
        for name, number in cases.items():
            self.cases[name] = self.cases.get(name, 0) + number
        sums = self.of_each.setdefault(row.memory_id, [0, 0, 0])
        for place, number in enumerate((row.turns, row.tokens, row.cost)):
            sums[place] += number

    def written(self) -> list[Any]:
        """Return turns, tokens and cost a turn, cases, and whether they are counted."""
        sent = [each for each in self.of_each.values() if each[0] and each[1]]
        tokens = median(each[1] / each[0] for each in sent) if sent else 0
        cost = median(each[2] / each[0] for each in sent) if sent else 0
        return [self.turns, round(tokens), round(cost), self.cases, self.counted]


def figures_of(
    split: str, known: dict[str, Known], rows: Sequence[Spent], now: datetime
) -> dict[str, Any]:
    """Return the figures of all conversations and of each group, by the hour and by the day."""
    days, hours = days_until(now, DAYS), hours_until(now, HOURS)
    group_of, counting = grouping(split, known), Counting.of(counted_flags())
    groups: dict[str, dict[str, list[Column]]] = {}

    def columns(group: str) -> dict[str, list[Column]]:
        if group not in groups:
            groups[group] = {
                "days": [Column() for _ in days],
                "hours": [Column() for _ in hours],
            }
        return groups[group]

    columns(EVERYTHING)
    places = {hour: n for n, hour in enumerate(hours)}
    day_places = _day_places(days)
    for row in rows:
        if row.memory_id not in known:
            continue
        cases = counting.cases(row) if row.cases else {}
        day, hour = day_places(row.hour), places.get(row.hour)
        for group in (EVERYTHING, group_of(row.memory_id)):
            found = columns(group)
            if day is not None:
                found["days"][day].add(row, cases)
            if hour is not None:
                found["hours"][hour].add(row, cases)
    sizes: defaultdict[str, int] = defaultdict(int)
    for memory_id in known:
        sizes[group_of(memory_id)] += 1
    sizes[EVERYTHING] = len(known)
    return {
        "days": days,
        "hours": hours,
        "flags": list(counting.rules),
        "groups": {
            name: {
                "size": sizes[name],
                **{span: [each.written() for each in some] for span, some in found.items()},
            }
            for name, found in groups.items()
        },
        "words": _words(split, known, groups),
        "others": sum(1 for name in sizes if name not in groups),
    }


def _words(split: str, known: Mapping[str, Known], groups: Container[str]) -> dict[str, str]:
    """Return the words of groups that are not called by their own names."""
    if split != "policy":
        return {}
    return {each.policy: each.policy_words for each in known.values() if each.policy in groups}


def _day_places(days: Sequence[int]) -> Callable[[int], int | None]:
    def place(hour: int) -> int | None:
        found = bisect_right(days, hour) - 1
        return found if found >= 0 else None

    return place


def ratio_of(columns: Sequence[Sequence[Any]], place: int, at: int | None) -> float | None:
    """Return the ratio of a value after a change to the value before it, such as `2.2`.

    None if the change is not known, is less than a column from an end, has fewer than 20 turns on a
    side, or is below 15 %.
    """
    if at is None or not 0 < at < len(columns):
        return None
    before = [each for each in columns[:at] if each[0] and each[place]]
    after = [each for each in columns[at:] if each[0] and each[place]]
    if min(sum(each[0] for each in some) for some in (before, after)) < LEAST_TURNS:
        return None
    one, other = (median(each[place] for each in some) for some in (before, after))
    if not one:
        return None
    found = other / one
    return found if abs(found - 1) >= FROM else None


# Kept


def kept_splits(known: Iterable[Known]) -> list[str]:
    """Return the names of the splits whose figures are kept: by tenant, and by one label."""
    names = labels_with_few_values(known)
    return [TENANT, *(f"label:{name}" for name in names[:1])]


def usual_split(known: Mapping[str, Known]) -> str:
    """Return the split that is shown first: a label if all conversations are of one tenant."""
    names = labels_with_few_values(known.values())
    is_one = len(set(map(tenant_of, known))) < 2
    return f"label:{names[0]}" if names and is_one else TENANT


@dataclass(frozen=True)
class Made:
    """Figures, and the time at which they were computed."""

    at: datetime
    values: dict[str, Any]

    @property
    def split(self) -> str:
        return str(self.values["split"])

    @property
    def told(self) -> dict[str, Telling]:
        return {name: Telling(*each) for name, each in self.values.get("told", {}).items()}


def kept(splits: Collection[str]) -> dict[str, Made]:
    """Return the kept figures of some splits, without those of other rules."""
    names = {_stored(split): split for split in splits}
    rows = KeptFigures.objects.filter(split__in=names)
    return {names[row.split]: Made(time_of(row.made_at), json.loads(row.content)) for row in rows}


def _stored(split: str) -> str:
    """Return the name under which the figures of a split are kept by these rules."""
    return f"{RULES} {split}"


def compute(split: str, which: MemoryQuerySet | None = None) -> Made:
    """Compute the figures of a split for all conversations, or for some."""
    now = timezone.now()
    known = known_of(Memory.objects.all() if which is None else which)
    ids = None if which is None else list(known)
    rows = list(spent(days_until(now, DAYS)[0], memory_ids=ids))
    if split == TENANT:
        split = usual_split(known)
    return Made(now, _with_changes(split, known, rows, now, changes_of(known, rows, now)))


def _with_changes(
    split: str,
    known: dict[str, Known],
    rows: Sequence[Spent],
    now: datetime,
    changes: Sequence[Change],
) -> dict[str, Any]:
    found = figures_of(split, known, rows, now)
    found["split"], found["labels"] = split, labels_with_few_values(known.values())
    found["examined"], found["untimed"] = time_left(), untimed()
    group_of = grouping(split, known)
    members: defaultdict[str, set[str]] = defaultdict(set)
    for memory_id in known:
        members[group_of(memory_id)].add(memory_id)
    if len(members) == 1:
        members[EVERYTHING] = set(known)
    last: dict[str, int] = {}
    for row in rows:
        last[row.memory_id] = max(row.hour, last.get(row.memory_id, 0))
    for name, group in found["groups"].items():
        change = newest_change_of(changes, members[name]) if name in members else None
        group["change"] = _written(change, members[name], last) if change else None
    return found


def _written(change: Change, members: set[str], last: Mapping[str, int]) -> list[Any]:
    """Return the time of a change, its words, and how many conversations have had turns since."""
    since = sum(last.get(each, 0) >= change.at for each in change.changed & members)
    return [change.at, change.words, change.full, since]


def refresh() -> float:
    """Compute and store the figures of all kept splits. Return the CPU time in seconds."""
    began, now = process_time(), timezone.now()
    known = known_of(Memory.objects.all())
    rows = list(spent(days_until(now, DAYS)[0]))
    changes = changes_of(known, rows, now)
    made = {
        split: _with_changes(split, known, rows, now, changes)
        for split in kept_splits(known.values())
    }
    before = kept((TENANT,)).get(TENANT)
    said = told(changes, rows, now, before.told if before else {})
    made[TENANT]["told"] = {name: astuple(each) for name, each in said.items()}
    made[TENANT]["usual"] = usual_split(known)
    made[TENANT]["facets"] = facets_of(known, rows, now)
    rows_of = [
        KeptFigures(
            split=_stored(split),
            made_at=microseconds(now),
            content=json.dumps(values, separators=(",", ":")),
        )
        for split, values in made.items()
    ]
    with database.atomic():
        KeptFigures.objects.exclude(split__in=map(_stored, made)).delete()
        KeptFigures.objects.bulk_create(
            rows_of,
            update_conflicts=True,
            unique_fields=["split"],
            update_fields=["made_at", "content"],
        )
    return process_time() - began


LEAST_SECONDS, SHARE = 5.0, 20  # between two refreshes: seconds, and times the last one took
_due: dict[str, float] = {"at": 0.0}


def refresh_if_due() -> None:
    """Keep the figures anew if hours were kept since, or an hour has begun, and this process has
    rested long enough.
    """
    if monotonic() < _due["at"]:
        return
    newest = KeptHours.objects.order_by("-kept_at").values_list("kept_at", flat=True).first() or 0
    rows = KeptFigures.objects.filter(split=_stored(TENANT))
    made = rows.values_list("made_at", flat=True).first() or 0
    if newest >= made or hour_of(time_of(made)) < hour_of(timezone.now()):
        _due["at"] = monotonic() + max(LEAST_SECONDS, SHARE * refresh())
