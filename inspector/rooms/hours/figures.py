"""The hourly and daily figures of groups, which are computed in the background and stored for the
overview.

Each group and each hour or day has turns, medians of tokens and of cost for a turn, and the cases
of each flag. The medians are over the conversations with an answer in this time, so that a huge
conversation does not change them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from statistics import median
from time import monotonic, process_time
from typing import Any

from django.utils import timezone

from chatmemory import database
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds, time_of
from inspector.rooms.hours.changes import changes_of
from inspector.rooms.hours.clock import days_until, hour_of, hours_until
from inspector.rooms.hours.columns import Columns
from inspector.rooms.hours.facets import facets_of
from inspector.rooms.hours.fleet import (
    Counting,
    Known,
    Spent,
    counted_flags,
    examined,
    grouping,
    known_of,
    labels_with_few_values,
    spent,
    untimed,
)
from inspector.rooms.hours.models import KeptFigures, KeptHours
from inspector.rooms.hours.telling import Telling, told

RULES = 3  # raise it with each change of the figures
DAYS, HOURS = 14, 24
SHOWN, LABELS = 6, 4
TENANT = "tenant"
EVERYTHING = "\0all"
LEAST_TURNS, FROM = 20, 0.15


class Fleet:
    """Many conversations with their hours, from which the figures of every grouping are
    computed.
    """

    def __init__(self, known: Mapping[str, Known], rows: Sequence[Spent], now: datetime) -> None:
        self.known, self.rows = known, rows
        self.changes = changes_of(known, rows, now)
        self._days, self._hours = days_until(now, DAYS), hours_until(now, HOURS)
        self._counting = Counting.of(counted_flags())
        self._columns = Columns(self._days, self._hours)
        self._columns.add(rows, known, self._counting)
        self._whole = self._columns.grouped(lambda memory_id: EVERYTHING)
        self._common = {
            "splits": splits_of(known.values()),
            "examined": examined(),
            "untimed": untimed(),
        }

    def by(self, split: str) -> dict[str, Any]:
        """Return the figures of all conversations and of each group, by hour and by day, as values
        for JSON. `split` is the grouping, such as `tenant` or `label:release`.
        """
        group_of = grouping(split, self.known)
        groups: dict[str, dict[str, Any]] = {
            EVERYTHING: self._columns.empty(),
            **self._whole,
            **self._columns.grouped(group_of),
        }
        sizes = Counter(map(group_of, self.known))
        sizes[EVERYTHING] = len(self.known)
        changes = self._changes_of(group_of)
        for name, group in groups.items():
            group = groups[name] = {**group, "size": sizes[name]}
            group["change"] = changes.get(name)
        return {
            "split": split,
            "days": self._days,
            "hours": self._hours,
            "flags": list(self._counting.rules),
            "groups": groups,
            "words": _words(split, self.known, groups),
            "others": sum(1 for name in sizes if name not in groups),
            **self._common,
        }

    @cached_property
    def _newest(self) -> dict[str, int]:
        """The place of the newest change of each conversation that has one, by id."""
        found: dict[str, int] = {}
        for n, change in enumerate(self.changes):
            for memory_id in chain(change.hours, change.after):
                found.setdefault(memory_id, n)
        return found

    @cached_property
    def _last(self) -> dict[str, int]:
        """The last hour of each conversation, by id."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row.memory_id] = max(row.hour, found.get(row.memory_id, 0))
        return found

    def _changes_of(self, group_of: Callable[[str], str]) -> dict[str, list[Any]]:
        """Return the newest change of each group: its time, its words, short and full, and how many
        conversations have had turns since. A change of the only group is also that of all.
        """
        newest: dict[str, int] = {}
        for memory_id, n in self._newest.items():
            name = group_of(memory_id)
            newest[name] = min(n, newest.get(name, n))
        since: Counter[str] = Counter()
        for memory_id, hour in self._last.items():
            name = group_of(memory_id)
            if name in newest:
                change = self.changes[newest[name]]
                since[name] += hour >= change.at and change.has_changed(memory_id)
        found = {name: self._written(n, since[name]) for name, n in newest.items()}
        if len(set(map(group_of, self.known))) == 1 and found:
            found[EVERYTHING] = next(iter(found.values()))
        return found

    def _written(self, n: int, since: int) -> list[Any]:
        change = self.changes[n]
        return [change.at, change.words, change.full, since]


def _words(split: str, known: Mapping[str, Known], groups: Container[str]) -> dict[str, str]:
    """Return the words of groups that are not called by their own names."""
    if split != "policy":
        return {}
    return {each.policy: each.policy_words for each in known.values() if each.policy in groups}


def ratio_of(columns: Sequence[Sequence[Any]], place: int, at: int | None) -> float | None:
    """Return the ratio of a value after a change to the value before it, such as `2.2`.

    `columns` are the figures by day or hour, `place` is the value's index, and `at` the index of
    the change. Return None if the change is unknown or at an end, if a side has fewer than 20
    turns, or if the difference is below 15 %.
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


def splits_of(known: Collection[Known]) -> list[str]:
    """Return the groupings whose figures are stored, such as `tenant`: only those that form
    groups.
    """
    labels = [f"label:{name}" for name in labels_with_few_values(known)[:LABELS]]
    of_calls = [
        name for name in ("provider", "model") if any(getattr(each, name) for each in known)
    ]
    return [TENANT, *labels, "policy", *of_calls]


def usual_split(known: Mapping[str, Known]) -> str:
    """Return the grouping that is shown first: by tenant, or by a label if all conversations have
    the same tenant.
    """
    names = labels_with_few_values(known.values())
    is_one = len({each.tenant for each in known.values()}) < 2
    return f"label:{names[0]}" if names and is_one else TENANT


@dataclass(frozen=True)
class Made:
    """Figures as values of JSON, and the time at which they were computed."""

    at: datetime
    values: dict[str, Any]

    @property
    def split(self) -> str:
        return str(self.values["split"])

    @property
    def told(self) -> dict[str, Telling]:
        return {name: Telling(*each) for name, each in self.values.get("told", {}).items()}


def kept(splits: Collection[str]) -> dict[str, Made]:
    """Return the stored figures of some groupings, by grouping. Figures that were computed by other
    rules are left out.
    """
    names = {_stored(split): split for split in splits}
    rows = KeptFigures.objects.filter(split__in=names)
    return {names[row.split]: Made(time_of(row.made_at), json.loads(row.content)) for row in rows}


def _stored(split: str) -> str:
    """Return the name under which the figures of a split are kept by these rules."""
    return f"{RULES} {split}"


def compute(split: str, which: MemoryQuerySet) -> Made:
    """Compute the figures of a grouping for some conversations, without storing them."""
    now = timezone.now()
    known = known_of(which)
    rows = list(spent(days_until(now, DAYS)[0], memory_ids=list(known)))
    split = usual_split(known) if split == TENANT else split
    return Made(now, Fleet(known, rows, now).by(split))


def refresh() -> float:
    """Compute and store the figures of all groupings. Return the CPU time in seconds."""
    began, now = process_time(), timezone.now()
    known = known_of(Memory.objects.all())
    rows = list(spent(days_until(now, DAYS)[0]))
    fleet = Fleet(known, rows, now)
    made = {split: fleet.by(split) for split in splits_of(known.values())}
    before = kept((TENANT,)).get(TENANT)
    said = told(fleet.changes, rows, now, before.told if before else {})
    made[TENANT] |= {
        "told": {name: astuple(each) for name, each in said.items()},
        "usual": usual_split(known),
        "facets": facets_of(known, rows, now),
    }
    with database.atomic():
        KeptFigures.objects.exclude(split__in=map(_stored, made)).delete()
        KeptFigures.objects.bulk_create(
            [
                KeptFigures(
                    split=_stored(split),
                    made_at=microseconds(now),
                    content=json.dumps(values, separators=(",", ":")),
                )
                for split, values in made.items()
            ],
            update_conflicts=True,
            unique_fields=["split"],
            update_fields=["made_at", "content"],
        )
    return process_time() - began


LEAST_SECONDS, SHARE = 5.0, 20  # between two refreshes: seconds, and times the last one took
_due: dict[str, float] = {"at": 0.0}


def refresh_if_due() -> None:
    """Refresh the figures if hours have changed since, or a new hour has begun.

    A process waits between refreshes, in proportion to the CPU time of the last one.
    """
    if monotonic() < _due["at"]:
        return
    newest = KeptHours.objects.order_by("-kept_at").values_list("kept_at", flat=True).first() or 0
    rows = KeptFigures.objects.filter(split=_stored(TENANT))
    made = rows.values_list("made_at", flat=True).first() or 0
    if newest >= made or hour_of(time_of(made)) < hour_of(timezone.now()):
        _due["at"] = monotonic() + max(LEAST_SECONDS, SHARE * refresh())
