"""The doctor's list: conversations whose windows providers refuse or mishandle, and since when.

It has what was kept at the last look at each conversation; see `queries.diagnosis`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F

from chatmemory.core.exceptions import CorruptRow, InvalidValue
from chatmemory.core.lint import PROVIDERS
from chatmemory.diagnosis import LISTED, Diagnosis, Problem
from chatmemory.flags import breaking
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.queries.cursors import CursorPage, SortKey, page_by_cursor
from chatmemory.queries.diagnosis import BITS, DiagnosisKeeper, kept_diagnosis, providers_of
from chatmemory.queries.rows import MemoryRow, memory_row


@dataclass(frozen=True)
class IllConversation:
    """A conversation with the diagnosis that is kept of it, which is of step `known_until`.

    Where that cannot be read, `unreadable` says so, and the diagnosis is empty.
    """

    memory: MemoryRow
    diagnosis: Diagnosis
    unreadable: str = ""

    @property
    def ill_at(self) -> datetime:
        """Since when its window has a problem; without any, when it changed last."""
        return self.diagnosis.ill_at or self.memory.updated_at

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.diagnosis.listed

    @property
    def refused_by(self) -> tuple[str, ...]:
        return self.diagnosis.refused_by

    @property
    def known_until(self) -> int:
        return self.diagnosis.step

    @property
    def is_current(self) -> bool:
        return self.known_until == self.memory.last_step


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
        if self.rule and self.rule not in LISTED:
            raise InvalidValue(f"no such rule is kept of conversations: {self.rule!r}")
        if self.provider and self.provider not in PROVIDERS:
            raise InvalidValue(f"unknown provider {self.provider!r}: one of {', '.join(PROVIDERS)}")
        rows = _ill(self.id_prefix)
        if self.rule:
            rows = rows.filter(breaking(self.rule))
        if self.provider:
            return rows.filter(keptdiagnosis__refused_by__in=_with_bit(BITS[self.provider]))
        return rows if self.rule else rows.filter(keptdiagnosis__refused_by__gt=0)


@dataclass(frozen=True)
class DoctorCounts:
    """How many conversations a provider refuses, each of them, and those that break each rule.

    `changed` have changed since they were looked at, or were not looked at yet.
    """

    refused: int
    by_provider: dict[str, int]
    by_rule: dict[str, int] = field(default_factory=dict)
    changed: int = 0


def doctor_counts(id_prefix: str = "") -> DoctorCounts:
    """Count the ill conversations by problem, by two queries."""
    columns = ("keptdiagnosis__problems", "keptdiagnosis__refused_by")
    rules: Counter[str] = Counter()
    providers: Counter[str] = Counter(dict.fromkeys(PROVIDERS, 0))
    refused = 0
    counts = _ill(id_prefix).values_list(*columns).annotate(Count("pk")).order_by()
    for problems, bits, count in counts:
        known = [rule for rule in LISTED if f",{rule}," in problems]
        rules.update(dict.fromkeys(known, count))
        providers.update(dict.fromkeys(providers_of(bits), count))
        refused += count if bits > 0 else 0
    changed = unexamined(id_prefix).count()
    return DoctorCounts(refused, dict(providers), dict(rules.most_common()), changed)


def doctor_page(
    which: IllFilter, *, cursor: str = "", size: int = 25
) -> CursorPage[IllConversation]:
    """Return a page of ill conversations, those that became ill last first.

    Raises InvalidValue for an unknown rule or provider, and for an invalid cursor.
    """
    key = SortKey(F("keptdiagnosis__ill_at"))
    rows = which.rows().select_related("keptdiagnosis")
    page = page_by_cursor(rows, key, descending=True, cursor=cursor, size=size)
    return CursorPage(tuple(map(_read, page.rows)), page.previous, page.next)


def ill_ids(which: IllFilter, most: int) -> list[str]:
    """Return the ids of the ill conversations, up to `most`."""
    rows = which.rows().order_by("-keptdiagnosis__ill_at", "-id")
    return list(rows.values_list("id", flat=True)[:most])


def unexamined(id_prefix: str = "") -> MemoryQuerySet:
    """Return the conversations that have changed since they were looked at, or never were."""
    version = DiagnosisKeeper().version()
    rows: MemoryQuerySet = Memory.objects.beginning_with(id_prefix).exclude(last_step=0)
    return rows.exclude(keptdiagnosis__step=F("last_step"), keptdiagnosis__version=version)


def ill_conversations() -> Iterator[IllConversation]:
    """Yield all conversations that break a rule, by id, as they are kept."""
    return map(_read, _ill().select_related("keptdiagnosis").order_by("id").iterator())


def _ill(id_prefix: str = "") -> MemoryQuerySet:
    rows: MemoryQuerySet = Memory.objects.beginning_with(id_prefix)
    return rows.filter(keptdiagnosis__ill_at__isnull=False)


def _read(row: Memory) -> IllConversation:
    kept = row.keptdiagnosis
    try:
        return IllConversation(memory_row(row), kept_diagnosis(kept))
    except CorruptRow as error:
        return IllConversation(memory_row(row), Diagnosis(kept.step), str(error))


def _with_bit(bit: int) -> list[int]:
    return [bits for bits in range(1 << len(BITS)) if bits & bit]
