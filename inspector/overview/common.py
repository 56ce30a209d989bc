"""Finds what most conversations with the same cause (reason for attention) have in common: a
tenant, a label, a policy, a provider or a model.

Each conversation with the cause is one case. A value is common if all of this is true:
- At least two thirds of the cases, and at least three cases, have the value.
- Its share among the cases is at least twice its share among all conversations.

If several values are common, the value that the fewest conversations have is taken. A second value
is added if exactly the same cases have both values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Value

from chatmemory import database
from chatmemory.flag import Flag
from chatmemory.managers import MemoryQuerySet
from chatmemory.messages.texts import printable
from chatmemory.models import Memory
from chatmemory.search import DIGEST_LABEL
from inspector.overview.cases import beginning, time_in
from inspector.shell import rooms

LEAST = 3
READ = 20_000  # conversations whose values are read at once
_NO_VALUES = {DIGEST_LABEL, "from"}
_PLACES = ("tenant", "label", "model", "provider", "policy")

NamedValue = tuple[str, str]  # the name of a filter, and its value


@dataclass(frozen=True)
class Common:
    """What most conversations with the same cause have in common, such as a tenant or a model. Each
    conversation with the cause is one case.

    - `cases` is the number of cases that were compared.
    - `tenants` is the number of different tenants in these cases. All conversations without a
      tenant count as one tenant.
    - `values` are the common values; empty if there is no common value.
    - `count` is the number of cases that have these values; 0 without `values`.
    - `since` is when the oldest case with these values began. Without `values`, it is when the
      oldest case of all began. None if no time is known.
    - `newest` is the ID of the conversation whose case began last; "" if this is not known.
    """

    cases: int
    count: int = 0
    values: tuple[NamedValue, ...] = ()
    tenants: int = 0
    since: datetime | None = None
    newest: str = ""

    @property
    def is_compared(self) -> bool:
        """Whether there are enough cases for a value to be common."""
        return self.cases >= LEAST

    @property
    def share(self) -> float:
        """The percentage of the cases that have the common values."""
        return 100 * self.count / self.cases if self.cases else 0.0

    @property
    def words(self) -> list[str]:
        """The common values in words: `hooli/`, `release 4.2.0`, `policy token_window`."""
        return [_words(*each) for each in self.values]


def _words(name: str, value: str) -> str:
    if name in ("tenant", "label"):
        return printable(value.replace(":", " ", 1) if name == "label" else value)
    return printable(f"{name} {value}")


def tenant_of(memory_id: str) -> str:
    """Return the tenant in a conversation ID: its beginning up to and including the first slash or
    colon, such as "hooli/" in "hooli/7". "" if there is none.
    """
    ends = [place for sign in "/:" if (place := memory_id.find(sign)) > 0]
    return memory_id[: min(ends) + 1] if ends else ""


class Everywhere:
    """Counts how many conversations of the site have a value, such as a label.

    On a site with very many conversations, each value is counted by a query. On any other site, the
    first count reads the values of all conversations.
    """

    def __init__(self, conversations: int) -> None:
        self._conversations = conversations

    @cached_property
    def _counts(self) -> Counter[NamedValue]:
        rows = Memory.objects.values_list(*_columns())
        return Counter(each for row in rows for each in _values(*row))

    @property
    def conversations(self) -> int:
        return self._conversations

    def count(self, name: str, value: str) -> int:
        if self._conversations > READ:
            return _count_with(name, value)
        return self._counts[name, value]


@dataclass(frozen=True)
class Group:
    """The conversations of one tenant that have the same cause (reason for attention).

    - `count` is the number of these conversations, and `conversations` the number of all
      conversations of the tenant.
    - `label` is a label that at least two thirds of these conversations have, such as "release
      4.2.0"; "" if there is no such label.
    - `newest` is the ID of the conversation in which the cause began last, and `at` is when it
      began there.
    """

    tenant: str
    label: str
    count: int
    conversations: int
    newest: str
    at: datetime | None

    @property
    def share(self) -> float:
        """The percentage of the tenant's conversations that have the cause."""
        return 100 * self.count / self.conversations if self.conversations else 0.0


Times = Mapping[str, datetime | None]  # when the case of each conversation began
Values = Mapping[str, Sequence[NamedValue]]  # by conversation


def values_of(memory_ids: Iterable[str]) -> Values:
    """Return the tenant, labels, policy and other values of each conversation, by conversation ID.
    Each of these values comes with the name of its filter, such as `("label", "release:4.2.0")`.
    """
    rows = Memory.objects.filter(database.in_list("id", memory_ids)).values_list(*_columns())
    return {row[0]: tuple(_values(*row)) for row in rows}


def common_of(flag: Flag, among: MemoryQuerySet | None, everywhere: Everywhere) -> Common:
    """Return what the conversations with a flag have in common. With `among`, conversations outside
    of `among` are ignored. `everywhere` counts how many conversations of the site have a value.
    """
    every = Memory.objects.all() if among is None else among
    rows = every.filter(flag.where)
    began = beginning(flag)
    timed = rows.annotate(began=began if began is not None else Value(None))
    found = list(timed.order_by("-updated_at").values_list("began", *_columns())[:READ])
    times = {row[0]: time_in(at) for at, *row in found}
    return common_in(times, {row[0]: tuple(_values(*row)) for _, *row in found}, everywhere)


def common_in(times: Times, values: Values, everywhere: Everywhere) -> Common:
    """Return what conversations with the same cause (reason for attention) have in common.

    `times` has the time at which the cause began, and `values` the tenant, labels and other values
    to compare, both by conversation ID. `everywhere` counts how many conversations of the site have
    a value.
    """
    having: dict[NamedValue, set[str]] = {}
    for memory_id in times:
        for pair in values.get(memory_id, ()):
            having.setdefault(pair, set()).add(memory_id)
    tenants = len({tenant_of(id) for id in times})
    groups = sorted(_groups(having, len(times), everywhere), key=lambda each: each[:3])
    newest = _newest(times)
    if not groups:
        return Common(len(times), 0, (), tenants, _oldest(times.values()), newest)
    smallest = groups[0][3]
    same = [pair for _, _, pair, own in groups if own == smallest]
    shown = tuple(sorted(same, key=lambda each: _PLACES.index(each[0]))[:2])
    since = _oldest(times[id] for id in smallest)
    return Common(len(times), len(smallest), shown, tenants, since, newest)


def groups_in(times: Times, values: Values, everywhere: Everywhere) -> list[Group]:
    """Group conversations with the same cause (reason for attention) by tenant, the largest group
    first. Conversations whose ID names no tenant are left out.

    `times` has the conversations and when the cause began in each. For `values` and `everywhere`,
    see `common_in`.
    """
    by_tenant: dict[str, list[str]] = {}
    for memory_id in times:
        by_tenant.setdefault(tenant_of(memory_id), []).append(memory_id)
    by_tenant.pop("", None)
    found = [
        _group(tenant, {id: times[id] for id in ids}, values, everywhere)
        for tenant, ids in by_tenant.items()
    ]
    return sorted(found, key=lambda each: (-each.count, each.tenant))


def _group(tenant: str, times: Times, values: Values, everywhere: Everywhere) -> Group:
    labels = Counter(pair for id in times for pair in values.get(id, ()) if pair[0] == "label")
    pair, count = next(iter(labels.most_common(1)), (("label", ""), 0))
    label = _words(*pair) if 3 * count >= 2 * len(times) else ""
    newest = _newest(times) or next(iter(times))
    conversations = everywhere.count("tenant", tenant)
    return Group(tenant, label, len(times), conversations, newest, times[newest])


def _groups(
    having: dict[NamedValue, set[str]], cases: int, everywhere: Everywhere
) -> Iterator[tuple[int, int, NamedValue, set[str]]]:
    """Yield the values that the cases have in common. Each comes with the number of all
    conversations that have it, minus the number of its cases, and its cases.
    """
    for pair, own in having.items():
        if len(own) >= LEAST and 3 * len(own) >= 2 * cases:
            count = everywhere.count(*pair)
            if len(own) * everywhere.conversations >= 2 * count * cases:
                yield count, -len(own), pair, own


def _oldest(times: Iterable[datetime | None]) -> datetime | None:
    return min((each for each in times if each is not None), default=None)


def _newest(times: Times) -> str:
    timed = [(at, id) for id, at in times.items() if at is not None]
    return max(timed)[1] if timed and len(times) < READ else ""


def _columns() -> list[str]:
    return ["id", "labels", "policy_kind", *rooms.value_columns().values()]


def _values(id: str, labels: object, kind: str | None, *others: str) -> Iterator[NamedValue]:
    if tenant := tenant_of(id):
        yield "tenant", tenant
    for name, value in labels.items() if isinstance(labels, dict) else ():
        if name not in _NO_VALUES and isinstance(value, str):
            yield "label", f"{name}:{value}" if value else name
    if kind:
        yield "policy", kind
    for name, value in zip(rooms.value_columns(), others, strict=True):
        if value:
            yield name, value


def _count_with(name: str, value: str) -> int:
    """Return how many conversations have a value."""
    rows: MemoryQuerySet = Memory.objects.all()
    counting: dict[str, Callable[[], MemoryQuerySet]] = {
        "tenant": lambda: rows.beginning_with(value),
        "label": lambda: rows.with_label(value),
        "policy": lambda: rows.filter(policy_kind=value),
    }
    column = rooms.value_columns().get(name, "")
    found = counting[name]() if name in counting else rows.filter(**{column: value})
    return int(found.count())
