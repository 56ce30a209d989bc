"""Reads the hourly figures of many conversations, and the groups of these conversations.

A group is a tenant, a value of a label, a policy, a provider or a model. Past hours count for the
group to which the conversation belongs today. A tenant is the beginning of the ID up to the first
slash or colon, such as `hooli/` in `hooli/7`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from django.db.models import Sum
from django.utils import timezone

from chatmemory.flag import Flag
from chatmemory.flags import flags
from chatmemory.managers import CLIENT, MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds
from chatmemory.search import DIGEST_LABEL
from chatmemory.windows.stored_policies import stored_policy
from inspector.overview.common import tenant_of
from inspector.rooms.hours.models import Hour, KeptHours

NO_GROUP = ""
RELEASES = ("release", "version", "app", "build", "sdk")  # labels that a deployment changes
FEW_VALUES = 50
NOT_VALUES = {DIGEST_LABEL, "from"}
MINUTE = 60


class Spent(NamedTuple):
    """The turns, tokens, cost and cases of a conversation in one hour.

    - `hour`: the start of the hour, in seconds since 1970.
    - `after_eviction`: the turns after the first eviction of the conversation.
    - `after_compaction`: the turns after its first compaction.
    - `cost`: a cost of 1,000 is the price of one input token.
    - `is_counted`: whether a provider has counted the tokens. If not, they are estimated.
    - `cases`: a pair for each problem that began. The pair has the name of the flag, and a text
      about the case, such as which rules were broken.
    """

    memory_id: str
    hour: int
    turns: int
    after_eviction: int
    after_compaction: int
    tokens: int
    cost: int
    is_counted: bool
    cases: Sequence[Sequence[str]]


def spent(first: int, end: int | None = None, flag: str = "") -> Iterator[Spent]:
    """Yield the figures of all conversations for each hour from `first` on; with `end`, only for
    hours before `end`. Both times are in seconds since 1970. With the name of a `flag`, yield only
    hours in which its problem began.
    """
    rows = Hour.objects.filter(hour__gte=first).order_by()
    if end is not None:
        rows = rows.filter(hour__lt=end)
    if flag:
        rows = rows.filter(cases__contains=json.dumps(flag))
    yield from map(_spent, rows.values_list(*_COLUMNS))


_COLUMNS = (
    *("memory_id", "hour", "turns", "after_eviction", "after_compaction"),
    *("tokens", "cost", "calls", "call_tokens", "call_cost", "cases"),
)


def _spent(row: tuple[str, int, int, int, int, int, int, int, int, int, str]) -> Spent:
    memory_id, hour, turns, evicted, compacted, tokens, cost, calls, counted, paid, cases = row
    if calls:
        tokens, cost = counted, paid
    found = _cases(cases) if cases else ()
    return Spent(memory_id, hour, turns, evicted, compacted, tokens, cost, bool(calls), found)


def _cases(text: str) -> Sequence[Sequence[str]]:
    try:
        found = json.loads(text)
    except ValueError:  # an altered row
        return ()
    is_known = isinstance(found, list) and all(
        isinstance(each, list) and len(each) == 2 and all(isinstance(x, str) for x in each)
        for each in found
    )
    return found if is_known else ()


@dataclass(frozen=True)
class Known:
    """The properties by which a conversation is grouped, such as its labels and its tenant.

    `policy` is the policy as URLs spell it, such as `token_window:800`. `policy_words` is the
    policy in words. `provider` and `model` are those of the newest recorded call, or "". `created`
    is in seconds since 1970.
    """

    labels: dict[str, str] = field(default_factory=dict)
    tenant: str = NO_GROUP
    policy: str = ""
    policy_words: str = ""
    provider: str = ""
    model: str = ""
    created: int = 0


UNKNOWN = Known()


def known_of(rows: MemoryQuerySet) -> dict[str, Known]:
    """Return the properties by which conversations are grouped, by conversation ID."""
    columns = (
        *("id", "labels", "policy_kind", "policy_limit", "policy_estimator", "policy_options"),
        *("kepthours__provider", "kepthours__model", "created_at"),
    )
    found: dict[str, Known] = {}
    policies: dict[str, str] = {}
    for row in rows.values_list(*columns):
        id, labels, kind, limit, estimator, options, provider, model, created = row
        key = f"{kind} {limit} {options}"
        if key not in policies:
            policies[key] = policy_words(kind, limit, estimator, options)
        own = {
            name: value
            for name, value in (labels.items() if isinstance(labels, dict) else ())
            if name not in NOT_VALUES and isinstance(value, str)
        }
        found[id] = Known(
            own,
            tenant_of(id),
            CLIENT if kind is None else f"{kind}:{limit}",
            policies[key],
            provider or "",
            model or "",
            int(created.timestamp()),
        )
    return found


def policy_words(kind: str | None, limit: int | None, estimator: str, options: object) -> str:
    if kind is None or limit is None:
        return "client decides"
    policy = stored_policy(kind, limit, estimator, options if isinstance(options, dict) else {})
    if policy.meters_only:
        return "everything"
    return f"limit {policy.limit:,}" + ("" if policy.unit == "tokens" else f" {policy.unit}")


def grouping(split: str, known: Mapping[str, Known]) -> Callable[[str], str]:
    """Return a function that returns the group of a conversation ID in a grouping such as `tenant`
    or `label:release`.
    """
    kind, _, name = split.partition(":")
    if kind == "label":
        return lambda memory_id: known.get(memory_id, UNKNOWN).labels.get(name, NO_GROUP)
    name = kind if kind in ("policy", "provider", "model") else "tenant"
    return lambda memory_id: str(getattr(known.get(memory_id, UNKNOWN), name))


def labels_with_few_values(known: Iterable[Known]) -> list[str]:
    """Return the names of the labels by which grouping is useful: labels that have few different
    values, and that at least three conversations have.

    Labels that change with a deployment, such as `release`, come first. Then come the labels that
    the most conversations have.
    """
    values: defaultdict[str, set[str]] = defaultdict(set)
    counts: defaultdict[str, int] = defaultdict(int)
    for each in known:
        for name, value in each.labels.items():
            counts[name] += 1
            if len(values[name]) <= FEW_VALUES:
                values[name].add(value)
    few = [name for name in values if len(values[name]) <= FEW_VALUES and counts[name] > 2]
    return sorted(few, key=lambda name: (_place(name), -counts[name], name))


def _place(name: str) -> int:
    return RELEASES.index(name) if name in RELEASES else len(RELEASES)


def counted_flags() -> list[Flag]:
    """Return the flags whose cases the overview counts by hour.

    A flag is counted if the ledger shows when its problems began, and if the settings that the flag
    needs are set. For example, a flag about rules of providers needs the setting of the providers
    in use.
    """
    return [each for each in flags() if each.cases.past and each.counts]


def causes() -> list[Flag]:
    """Return the flags of `counted_flags`. A flag with parts is replaced by a flag for each part,
    such as each rule of a provider.
    """
    return [
        part
        for each in counted_flags()
        for part in (each.cases.parts and each.cases.parts()) or [each]
    ]


@dataclass(frozen=True)
class Counting:
    """Decides which past cases still count today. For example, a case counts only if its provider
    is still in use.

    `rules` has a function for each flag, by name. The function gets a conversation ID and the
    detail of a case, and returns whether the case counts. None instead of a function: all cases
    count.
    """

    rules: dict[str, Callable[[str, str], bool] | None]

    @classmethod
    def of(cls, these: Iterable[Flag]) -> Counting:
        """Return the `Counting` of the given flags, by today's settings. Flags whose earlier cases
        the ledger does not show are left out.
        """
        return cls(
            {
                each.name: past.counting() if past.counting else None
                for each in these
                if (past := each.cases.past)
            }
        )

    def cases(self, row: Spent) -> dict[str, int]:
        """Return how many cases began in the hour of `row`, by name of the flag. Cases that no
        longer count are left out.
        """
        found = {each: self._number(row, each, each) for each, _ in row.cases if each in self.rules}
        return {name: number for name, number in found.items() if number}

    def number(self, row: Spent, flag: Flag) -> int:
        """Return how many cases of a flag began in the hour of `row`. Cases that no longer count
        are left out. `flag` can be a part of another flag, such as `refused.dangling_call` of
        `refused`.
        """
        return self._number(row, flag.name.partition(".")[0], flag.name) if row.cases else 0

    def _number(self, row: Spent, whole: str, name: str) -> int:
        counts = self.rules[name]
        return sum(
            each == whole and (counts is None or counts(row.memory_id, detail))
            for each, detail in row.cases
        )


def examined() -> tuple[int, int, int]:
    """Return three numbers: how many conversations have hourly figures, how many have steps, and
    the seconds until all have hourly figures. Unfinished imports do not count as conversations with
    steps.

    The seconds are estimated from the speed of the last minute. They are 0 if nothing is left to
    do, or if the speed is unknown.
    """
    whole = Memory.objects.filter(last_step__gt=0, imported=None).count()
    known = KeptHours.objects.count()
    if known >= whole:
        return known, whole, 0
    since = microseconds(timezone.now() - timedelta(seconds=MINUTE))
    lately = KeptHours.objects.filter(kept_at__gte=since).count()
    return known, whole, MINUTE * (whole - known) // lately if lately else 0


def untimed() -> int:
    """Return how many messages have no time. Such messages count in no hour."""
    return KeptHours.objects.aggregate(sum=Sum("untimed"))["sum"] or 0
