"""The values that filters of the overview offer, computed together with the hourly figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime

from inspector.rooms.hours.clock import days_until
from inspector.rooms.hours.fleet import Known, Spent, labels_with_few_values
from inspector.shell.times import there

OFFERED = 12
DAYS = 7

Facet = tuple[str, int, str]  # a value of a filter, its conversations, and its words


def facets_of(
    known: Mapping[str, Known], rows: Sequence[Spent], now: datetime
) -> dict[str, list[Facet]]:
    """Return the values that each filter of the overview offers, by the filter's name. A filter
    offers its most common values. The filter `day` offers the days with messages among the last 7
    days.
    """
    names = labels_with_few_values(known.values())
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for each in known.values():
        for filter, value, words in _values(each, names):
            counts.setdefault(filter, Counter())[value, words] += 1
    found = {filter: _most(count) for filter, count in counts.items()}
    return {**found, "day": _days(rows, now)}


def _values(each: Known, names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    if each.tenant:
        yield "tenant", each.tenant, each.tenant
    for name in names:
        if value := each.labels.get(name):
            yield "label", f"{name}:{value}", f"{name} {value}"
    yield "policy", each.policy, each.policy_words
    if each.provider:
        yield "provider", each.provider, each.provider
    if each.model:
        yield "model", each.model, each.model


def _most(count: Counter[tuple[str, str]]) -> list[Facet]:
    found = sorted(count.items(), key=lambda each: (-each[1], each[0]))
    return [(value, number, words) for (value, words), number in found[:OFFERED]]


def _days(rows: Sequence[Spent], now: datetime) -> list[Facet]:
    """Return the last days in which something was said, today first."""
    starts = days_until(now, DAYS)
    found: dict[date, set[str]] = {}
    for row in rows:
        if row.hour >= starts[0]:
            local = there(row.hour)
            assert isinstance(local, datetime)
            found.setdefault(local.date(), set()).add(row.memory_id)
    return [(day.isoformat(), len(found[day]), "") for day in sorted(found, reverse=True)]
