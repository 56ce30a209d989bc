"""The doctor's list: conversations whose windows providers refuse or mishandle, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.lint import PROVIDERS, Finding
from chatmemory.ledger.health import BITS, KEPT, SHORT, Fault, Health, providers_of
from chatmemory.ledger.windows import open_stays, shown_message
from chatmemory.linting import lint
from chatmemory.managers import MemoryQuerySet, breaking
from chatmemory.models import Memory
from chatmemory.queries.cursors import CursorPage, SortKey, page_by_cursor
from chatmemory.queries.rows import MemoryRow, memory_row

PROBLEMS = sorted({*KEPT, SHORT})


@dataclass(frozen=True)
class Problem:
    """A rule that a window breaks, since a step, with the newest message at fault (0: the window as
    a whole), and the providers that refuse or mishandle it for that.
    """

    rule: str
    since: int
    seq: int
    refused_by: tuple[str, ...]
    mishandled_by: tuple[str, ...]


@dataclass(frozen=True)
class IllConversation:
    """A conversation with problems, the oldest first, since a time."""

    memory: MemoryRow
    ill_at: datetime
    problems: tuple[Problem, ...]

    @property
    def refused_by(self) -> tuple[str, ...]:
        named = {name for each in self.problems for name in each.refused_by}
        return tuple(name for name in PROVIDERS if name in named)


@dataclass(frozen=True)
class IllFilter:
    """Which of the ill conversations are asked for: those with a rule, or that a provider refuses.
    Without either, those that any provider refuses.
    """

    rule: str = ""
    provider: str = ""
    id_prefix: str = ""

    def rows(self) -> MemoryQuerySet:
        """Return the rows. Raises InvalidValue for an unknown rule or provider."""
        if self.rule and self.rule not in PROBLEMS:
            raise InvalidValue(f"no such rule is kept of conversations: {self.rule!r}")
        if self.provider and self.provider not in PROVIDERS:
            raise InvalidValue(f"unknown provider {self.provider!r}: one of {', '.join(PROVIDERS)}")
        rows: MemoryQuerySet = Memory.objects.beginning_with(self.id_prefix)
        rows = rows.filter(ill_at__isnull=False)
        if self.rule:
            rows = rows.filter(breaking(self.rule))
        if self.provider:
            return rows.filter(refused_by__in=_with_bit(BITS[self.provider]))
        return rows if self.rule else rows.filter(refused_by__gt=0)


@dataclass(frozen=True)
class DoctorCounts:
    """How many conversations a provider refuses, each of them, and those that break each rule."""

    refused: int
    by_provider: dict[str, int]
    by_rule: dict[str, int] = field(default_factory=dict)


def doctor_counts(id_prefix: str = "") -> DoctorCounts:
    """Count the ill conversations by problem, by one query."""
    ill = Memory.objects.beginning_with(id_prefix).filter(ill_at__isnull=False)
    rules: Counter[str] = Counter()
    providers: Counter[str] = Counter(dict.fromkeys(PROVIDERS, 0))
    refused = 0
    for problems, bits, count in (
        ill.values_list("problems", "refused_by").annotate(Count("pk")).order_by()
    ):
        rules.update(dict.fromkeys(problems.strip(",").split(","), count))
        providers.update(dict.fromkeys(providers_of(bits), count))
        refused += count if bits else 0
    return DoctorCounts(refused, dict(providers), dict(rules.most_common()))


def doctor_page(
    which: IllFilter, *, cursor: str = "", size: int = 25
) -> CursorPage[IllConversation]:
    """Return a page of ill conversations, those that became ill last first.

    Raises InvalidValue for an unknown rule or provider, and for an invalid cursor.
    """
    key = SortKey(F("ill_at"), datetime)
    page = page_by_cursor(which.rows(), key, descending=True, cursor=cursor, size=size)
    return CursorPage(tuple(map(_ill, page.rows)), page.previous, page.next)


def ill_ids(which: IllFilter, most: int) -> list[str]:
    """Return the ids of the ill conversations, up to `most`."""
    return list(which.rows().order_by("-ill_at", "-id").values_list("id", flat=True)[:most])


def problems_of(row: Memory) -> tuple[Problem, ...]:
    """Return the problems of a conversation, those first that a provider refuses, the oldest ones
    before others.
    """
    by_rule: dict[str, list[Fault]] = {}
    for fault in Health.of(row.health).faults:
        by_rule.setdefault(fault.rule, []).append(fault)
    problems = [_problem(rule, faults) for rule, faults in by_rule.items()]
    return tuple(sorted(problems, key=lambda each: (not each.refused_by, each.since, each.rule)))


def _problem(rule: str, faults: Sequence[Fault]) -> Problem:
    refused = mishandled = 0
    for fault in faults:
        refused |= fault.refused
        mishandled |= fault.mishandled
    return Problem(
        rule,
        min(fault.since for fault in faults),
        max(fault.seq for fault in faults),
        tuple(providers_of(refused)),
        tuple(providers_of(mishandled)),
    )


def _ill(row: Memory) -> IllConversation:
    assert row.ill_at is not None
    return IllConversation(memory_row(row), row.ill_at, problems_of(row))


def _with_bit(bit: int) -> list[int]:
    return [bits for bits in range(1 << len(BITS)) if bits & bit]


def stored_findings(provider: str) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the ill conversations that a provider refuses or mishandles, by id, with what the
    linter finds in their windows.
    """
    ill = Memory.objects.filter(ill_at__isnull=False)
    for memory_id in ill.order_by("id").values_list("id", flat=True).iterator():
        rows = list(open_stays(memory_id).select_related("message"))
        messages = [shown_message(row.message, row.overrides) for row in rows]
        found = lint(messages, provider=provider, numbers=[row.seq for row in rows])
        if found:
            yield memory_id, found
