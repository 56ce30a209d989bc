"""The hourly and daily figures of groups, computed in the background and stored for the overview.

The figures of an hour or day are its turns, its new problems, and medians of tokens and cost per
turn. The median is over conversations, so that one huge conversation does not change it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import chain, compress
from statistics import median
from time import monotonic, process_time

from django.utils import timezone

from chatmemory import database
from chatmemory.managers import MemoryQuerySet
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds, time_of
from inspector.rooms.hours.changes import Change, changes_of
from inspector.rooms.hours.clock import days_until, hour_of, hours_until
from inspector.rooms.hours.columns import EMPTY, NOBODY, Column, columns_of
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

RULES = 5  # raise it with each change of the figures
DAYS, HOURS = 14, 24
SHOWN, LABELS = 6, 4
TENANT = "tenant"
EVERYTHING = "\0all"
FLEET = "fleet"  # what the figures of a filter are computed from
DIGEST = 8  # bytes
LEAST_TURNS, FROM = 20, 0.15


@dataclass(frozen=True)
class Grouped:
    """The groups of one grouping, such as the tenants. `names` are the names of the groups.
    `numbers` has for each conversation the index of its group in `names`.

    `words` has the titles of policies, by name: `limit 800` for `token_window:800`. For other
    groupings, `words` is empty.
    """

    names: list[str]
    numbers: list[int]
    words: dict[str, str]


@dataclass(frozen=True)
class Fleet:
    """All conversations with their groups and hourly figures, from which the figures of any
    grouping and filter are computed. The index of a conversation is its position in `ids`.

    - `ids`: digests of the IDs, so that no erased ID is stored.
    - `models`: the conversations grouped by model.
    - `groups`: the groups of each grouping, by the grouping's name, such as `tenant`.
    - `starts`: the starts of the last days and hours, under the keys `days` and `hours`, in seconds
      since 1970.
    - `columns`: a column of figures for each of the `starts`, under the same keys.
    - `flags`: the names of the counted flags.
    - `changes`: the changes of policies and labels, newest first: time, short text, long text.
    - `changed`: three values for each conversation that has a change: its index, the index of its
      newest change in `changes`, and whether it was active since that change.
    - `common`: values that do not depend on the grouping, such as the number of messages without a
      time.
    """

    ids: list[str]
    models: Grouped
    groups: dict[str, Grouped]
    starts: dict[str, list[int]]  # of columns, by span
    columns: dict[str, list[Column]]
    flags: list[str]
    changes: list[tuple[int, str, str]]
    changed: list[tuple[int, int, bool]]
    common: JsonDict

    @classmethod
    def of(
        cls,
        known: Mapping[str, Known],
        rows: Sequence[Spent],
        changes: Sequence[Change],
        now: datetime,
    ) -> Fleet:
        """Return the fleet of the conversations in `known`. `rows` are the hourly figures of these
        conversations. `changes` are the changes of policies and labels, newest first. For each
        conversation, only the newest change of its own policy or label is used.
        """
        places = {memory_id: n for n, memory_id in enumerate(known)}
        starts = {"days": days_until(now, DAYS), "hours": hours_until(now, HOURS)}
        counting = Counting.of(counted_flags())
        last = _last_hours(rows)
        splits = splits_of(known.values())
        return cls(
            [_digest(each) for each in known],
            _grouped("model", known),
            {split: _grouped(split, known) for split in splits},
            starts,
            {
                span: columns_of(rows, some, _column_of(span, some, rows), places, counting)
                for span, some in starts.items()
            },
            list(counting.rules),
            [(each.at, each.words, each.full) for each in changes],
            [
                (places[id], n, last.get(id, 0) >= changes[n].at)
                for id, n in _newest(changes).items()
                if id in places
            ],
            {"splits": splits, "examined": examined(), "untimed": untimed()},
        )

    @classmethod
    def read(cls, content: str) -> Fleet:
        """Return the `Fleet` from the JSON that its method `written` returned."""
        values = json.loads(content)
        values["models"] = Grouped(**values["models"])
        values["groups"] = {name: Grouped(**each) for name, each in values["groups"].items()}
        values["columns"] = {
            span: [Column(**each) for each in some] for span, some in values["columns"].items()
        }
        return cls(**values)

    def written(self) -> str:
        return json.dumps(self, default=vars, separators=(",", ":"))

    def by(self, split: str, listed: Iterable[str] | None = None) -> JsonDict:
        """Return the figures of each group and of all conversations together, by hour and by day,
        as values for JSON.

        `split` is the grouping, such as `tenant` or `label:release`. With `listed`, only
        conversations with these IDs count. If all of them have the same tenant, the grouping
        `tenant` is replaced by a label; see `usual_split`.
        """
        is_in = self._is_in(listed)
        split = self.usual_split(is_in) if split == TENANT and is_in else split
        grouped = self.groups[split]
        numbers = grouped.numbers
        if is_in is not None:
            numbers = [n if is_in[place] else NOBODY for place, n in enumerate(numbers)]
        columns = {
            span: [each.grouped(numbers) for each in some] for span, some in self.columns.items()
        }
        sizes = Counter(numbers)
        del sizes[NOBODY]
        shown = set(chain.from_iterable(each for some in columns.values() for each in some))
        changes = self._changes_of(numbers, sizes)
        models = self._models_of(numbers)
        names = {NOBODY: EVERYTHING, **dict(enumerate(grouped.names))}
        groups = {
            names[n]: {
                **{span: [each.get(n, EMPTY) for each in some] for span, some in columns.items()},
                "size": sizes[n] if n != NOBODY else sizes.total(),
                "change": changes.get(n),
                "models": sorted(models.get(n, ())),
            }
            for n in sorted(shown)
        }
        return {
            "split": split,
            **self.starts,
            "flags": self.flags,
            "groups": groups,
            "words": {name: each for name, each in grouped.words.items() if name in groups},
            "others": len(sizes.keys() - shown),
            **self.common,
        }

    def usual_split(self, is_in: Sequence[bool] | None = None) -> str:
        """Return the grouping that is shown first. This is `tenant`, if the conversations have
        different tenants. Otherwise, it is the first grouping by a label, such as `label:release`.
        If there is no grouping by a label, it is `tenant` too.

        `is_in` says for each conversation whether it counts; None if all count.
        """
        numbers = self.groups[TENANT].numbers
        tenants = set(numbers if is_in is None else compress(numbers, is_in))
        label = next((split for split in self.groups if split.startswith("label:")), TENANT)
        return label if len(tenants) < 2 else TENANT

    def _is_in(self, listed: Iterable[str] | None) -> list[bool] | None:
        """Return for each conversation whether its ID is in `listed`. Return None if `listed` is
        None.
        """
        if listed is None:
            return None
        these = set(map(_digest, listed))
        return [each in these for each in self.ids]

    def _models_of(self, numbers: Sequence[int]) -> dict[int, set[str]]:
        """Return the models of each group, and under NOBODY the models of all groups. A
        conversation without a recorded call has the model "".
        """
        pairs = set(zip(numbers, self.models.numbers, strict=True))
        found: defaultdict[int, set[str]] = defaultdict(set)
        for group, model in pairs:
            if group != NOBODY:
                found[group].add(self.models.names[model])
                found[NOBODY].add(self.models.names[model])
        return found

    def _changes_of(self, numbers: Sequence[int], sizes: Collection[int]) -> dict[int, JsonList]:
        """Return the newest change of each group: time, short text, long text, and how many of its
        conversations had turns since.

        If there is only one group, NOBODY (all groups) has the same change.
        """
        newest: dict[int, int] = {}
        for place, n, _ in self.changed:
            newest[numbers[place]] = min(n, newest.get(numbers[place], n))
        newest.pop(NOBODY, None)
        since = Counter(
            numbers[place]
            for place, n, has_turns in self.changed
            if has_turns and newest.get(numbers[place]) == n
        )
        found = {group: [*self.changes[n], since[group]] for group, n in newest.items()}
        if len(sizes) == 1 and found:
            found[NOBODY] = next(iter(found.values()))
        return found


def _digest(memory_id: str) -> str:
    return blake2b(memory_id.encode(), digest_size=DIGEST).hexdigest()


def _grouped(split: str, known: Mapping[str, Known]) -> Grouped:
    """Return the groups of all conversations by a split."""
    group_of = grouping(split, known)
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(group_of(each), len(numbers)) for each in known]
    words = {each.policy: each.policy_words for each in known.values()} if split == "policy" else {}
    return Grouped(list(numbers), found, words)


def _column_of(span: str, starts: Sequence[int], rows: Iterable[Spent]) -> dict[int, int]:
    """Return the index of the column that contains an hour, by the start of the hour."""
    if span == "hours":
        return {hour: n for n, hour in enumerate(starts)}
    hours = {row.hour for row in rows}
    return {hour: bisect_right(starts, hour) - 1 for hour in hours if hour >= starts[0]}


def _newest(changes: Sequence[Change]) -> dict[str, int]:
    """Return the index of the newest change of each changed conversation, by ID."""
    found: dict[str, int] = {}
    for n, change in enumerate(changes):
        for memory_id in chain(change.hours, change.after):
            found.setdefault(memory_id, n)
    return found


def _last_hours(rows: Iterable[Spent]) -> dict[str, int]:
    """Return the last hour of each conversation, by id."""
    found: dict[str, int] = {}
    for row in rows:
        if row.hour > found.get(row.memory_id, 0):
            found[row.memory_id] = row.hour
    return found


def ratio_of(columns: Sequence[Sequence[JsonValue]], place: int, at: int | None) -> float | None:
    """Return a value after a change divided by the value before the change, such as `2.2`. Both
    values are medians.

    `columns` are the figures by day or hour. `place` is the index of the value in a column. `at` is
    the index of the column in which the change happened. This column counts as after the change.

    Return None in three cases:

    - `at` is None, 0, or not the index of a column;
    - there are fewer than 20 turns before the change, or fewer than 20 turns after it;
    - the values differ by less than 15 %.
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
    """Return the groupings whose figures are stored, such as `tenant` and `label:release`.
    Groupings by `provider` and `model` are left out if no conversation has a recorded call.
    """
    labels = [f"label:{name}" for name in labels_with_few_values(known)[:LABELS]]
    of_calls = [
        name for name in ("provider", "model") if any(getattr(each, name) for each in known)
    ]
    return [TENANT, *labels, "policy", *of_calls]


@dataclass(frozen=True)
class Made:
    """Figures as values of JSON, and the time at which they were computed."""

    at: datetime
    values: JsonDict

    @property
    def split(self) -> str:
        return str(self.values["split"])

    @property
    def told(self) -> dict[str, Telling]:
        return {name: Telling(*each) for name, each in self.values.get("told", {}).items()}


def kept(splits: Collection[str]) -> dict[str, Made]:
    """Return the stored figures of the given groupings, such as `tenant`. The keys are names of
    groupings. Figures that an older version of the code computed (see `RULES`) are left out.
    """
    names = {_stored(split): split for split in splits}
    rows = KeptFigures.objects.filter(split__in=names)
    return {names[row.split]: Made(time_of(row.made_at), json.loads(row.content)) for row in rows}


def _stored(split: str) -> str:
    """Return the name of a grouping in the database, which includes the version of the rules."""
    return f"{RULES} {split}"


def computed(split: str, which: MemoryQuerySet) -> Made | None:
    """Compute the figures of a grouping for the conversations in `which`, without storing them.
    Return None if `refresh` has not stored any figures yet.
    """
    row = KeptFigures.objects.filter(split=_stored(FLEET)).first()
    if row is None:
        return None
    fleet = Fleet.read(row.content)
    listed = which.order_by().values_list("id", flat=True)
    return Made(time_of(row.made_at), fleet.by(split, listed))


def refresh() -> float:
    """Compute and store the figures of all groupings. Return the CPU time in seconds."""
    began, now = process_time(), timezone.now()
    known = known_of(Memory.objects.all())
    rows = [row for row in spent(days_until(now, DAYS)[0]) if row.memory_id in known]
    changes = changes_of(known, rows, now)
    fleet = Fleet.of(known, rows, changes, now)
    made = {split: fleet.by(split) for split in fleet.groups}
    before = kept((TENANT,)).get(TENANT)
    said = told(changes, rows, now, before.told if before else {})
    made[TENANT] |= {
        "told": {name: astuple(each) for name, each in said.items()},
        "usual": fleet.usual_split(),
        "facets": facets_of(known, rows, now),
    }
    contents = {split: json.dumps(each, separators=(",", ":")) for split, each in made.items()}
    _store({**contents, FLEET: fleet.written()}, now)
    return process_time() - began


def _store(contents: Mapping[str, str], now: datetime) -> None:
    with database.atomic():
        KeptFigures.objects.exclude(split__in=map(_stored, contents)).delete()
        KeptFigures.objects.bulk_create(
            [
                KeptFigures(
                    split=_stored(split),
                    made_at=microseconds(now),
                    content=content,
                )
                for split, content in contents.items()
            ],
            update_conflicts=True,
            unique_fields=["split"],
            update_fields=["made_at", "content"],
        )


LEAST_SECONDS, SHARE = 5.0, 20  # between two refreshes: seconds, and times the last one took
_due: dict[str, float] = {"at": 0.0}


def refresh_if_due() -> None:
    """Refresh all stored figures if conversations have new hourly figures, or if a new hour has
    begun.

    After a refresh, no other refresh begins for a while. The pause is longer if the refresh took
    more CPU time.
    """
    if monotonic() < _due["at"]:
        return
    newest = KeptHours.objects.order_by("-kept_at").values_list("kept_at", flat=True).first() or 0
    rows = KeptFigures.objects.filter(split=_stored(TENANT))
    made = rows.values_list("made_at", flat=True).first() or 0
    if newest >= made or hour_of(time_of(made)) < hour_of(timezone.now()):
        _due["at"] = monotonic() + max(LEAST_SECONDS, SHARE * refresh())
