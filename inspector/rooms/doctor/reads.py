"""Reads of the doctor: conversations that providers in use would reject or mishandle, and their
common causes.

The reads use the stored diagnosis of each conversation; see `diagnosing`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from django.db.models import Count, F, Q

from chatmemory import database
from chatmemory.exceptions import CorruptRow, InvalidValue
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.reading.cursors import CursorPage, SortKey, page_by_cursor
from chatmemory.reading.rows import MemoryRow, memory_row
from inspector.rooms.doctor.choosing import Choices, choices
from inspector.rooms.doctor.diagnosing import DiagnosisKeeper, kept_diagnosis
from inspector.rooms.doctor.diagnosis import Diagnosis, Problem, listed_rules
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.providers import BITS
from inspector.rooms.doctor.using import ALL, InUse

READ_AT_ONCE = 20_000  # conversations that causes are made from, the newest cases
DAYS = 14


@dataclass(frozen=True)
class IllConversation:
    """A conversation and its stored diagnosis, limited to the providers in use or to one named
    provider.

    The diagnosis is about the window after the step `known_until`, which may be older than the
    newest step.

    If the stored diagnosis cannot be read, `unreadable` is a sentence that says so, and `diagnosis`
    has no problems.
    """

    memory: MemoryRow
    diagnosis: Diagnosis
    unreadable: str = ""

    @property
    def ill_at(self) -> datetime:
        """The time since which the window has a problem. Without a problem, the time of the
        conversation's last change.
        """
        return self.diagnosis.ill_at or self.memory.updated_at

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.diagnosis.listed

    @property
    def refused_by(self) -> tuple[str, ...]:
        return self.diagnosis.refused_by

    @property
    def is_repairable(self) -> bool:
        """Whether the window has a problem that a repair would solve for a provider in use."""
        return any(each.repairable_for for each in self.problems)

    @property
    def known_until(self) -> int:
        return self.diagnosis.step

    @property
    def is_current(self) -> bool:
        return self.known_until == self.memory.last_step


@dataclass(frozen=True)
class IllFilter:
    """Selects conversations with problems.

    - `rule`: only windows that break this rule, whether they are rejected or only mishandled.
      Without a rule, all rejected windows.
    - `provider`: only this provider counts. Without a provider, all providers in use count.
    - `id_prefix`: only conversations whose IDs begin with this prefix.
    """

    rule: str = ""
    provider: str = ""
    id_prefix: str = ""

    @cached_property
    def choices(self) -> Choices:
        """The providers that count: the named provider, or, without a name, the providers in
        use.
        """
        return choices().naming(self.provider)

    def rows(self) -> MemoryQuerySet:
        """Return the conversations that the filter selects. Raises InvalidValue for an unknown rule
        or provider.
        """
        if self.rule and self.rule not in listed_rules():
            raise InvalidValue(
                f"unknown rule {self.rule!r}, or a rule that stored conversations are not checked "
                "by: choose a rule that the doctor lists"
            )
        if self.provider and self.provider not in PROVIDERS:
            raise InvalidValue(
                f"unknown provider {self.provider!r}: choose one of {', '.join(PROVIDERS)}"
            )
        rows: MemoryQuerySet = Memory.objects.beginning_with(self.id_prefix)
        rows = rows.filter(keptdiagnosis__ill_at__isnull=False)
        severities = "!~" if self.rule else "!"
        return rows.filter(self.choices.where(rule=self.rule, severities=severities))


@dataclass(frozen=True)
class DoctorCounts:
    """The number of conversations with problems for the providers in use.

    - `refused` is the number of conversations that at least one provider would reject.
    - `by_provider` is the number of conversations that a provider would reject, by provider.
    - `by_rule` is the number of conversations whose windows break a rule, by rule. Mishandled
      windows count, too.
    - `changed` is the number of conversations without a current diagnosis.

    If no conversation has been examined yet, `refused` is None, and `by_provider` and `by_rule` are
    empty.
    """

    refused: int | None
    by_provider: dict[str, int]
    by_rule: dict[str, int] = field(default_factory=dict)
    changed: int = 0


def doctor_counts(id_prefix: str = "", made: Choices | None = None) -> DoctorCounts:
    """Return the numbers of conversations with problems, in total, by provider and by rule. `made`
    says which providers count; None means the providers in use.
    """
    made = made or choices()
    rules: Counter[str] = Counter()
    providers: Counter[str] = Counter(dict.fromkeys(made.everywhere.providers, 0))
    refused = 0
    for memory_id, diagnosis in _kept(_minded(id_prefix)):
        found = diagnosis.under(made.of(memory_id))
        rules.update({each.rule for each in found.listed})
        providers.update(found.refused_by)
        refused += bool(found.refused_by)
    changed = unexamined(id_prefix).count()
    if is_unexamined(changed, id_prefix):
        return DoctorCounts(None, {}, {}, changed)
    return DoctorCounts(refused, dict(providers), dict(rules.most_common()), changed)


def is_unexamined(changed: int, id_prefix: str = "") -> bool:
    """Return whether there are conversations to diagnose, but no conversation has a stored
    diagnosis yet.

    `changed` is the number of conversations without a current diagnosis. Only conversations whose
    IDs begin with `id_prefix` count.
    """
    rows: MemoryQuerySet = Memory.objects.beginning_with(id_prefix)
    return changed > 0 and not rows.filter(keptdiagnosis__isnull=False).exists()


def doctor_page(
    which: IllFilter, *, cursor: str = "", size: int = 25
) -> CursorPage[IllConversation]:
    """Return a page of conversations with problems, the newest problem first.

    Raises InvalidValue for an unknown rule or provider, and for an invalid cursor.
    """
    key = SortKey(F("keptdiagnosis__ill_at"))
    rows = which.rows().select_related("keptdiagnosis")
    page = page_by_cursor(rows, key, descending=True, cursor=cursor, size=size)
    found = tuple(_read(row, which.choices) for row in page.rows)
    return CursorPage(found, page.previous, page.next)


def ill_ids(which: IllFilter, most: int) -> list[str]:
    """Return the IDs of up to `most` conversations with problems, the newest problem first."""
    rows = which.rows().order_by("-keptdiagnosis__ill_at", "-id")
    return list(rows.values_list("id", flat=True)[:most])


def unexamined(id_prefix: str = "") -> MemoryQuerySet:
    """Return the conversations that have steps, but no current diagnosis."""
    version = DiagnosisKeeper().version()
    rows: MemoryQuerySet = Memory.objects.beginning_with(id_prefix).exclude(last_step=0)
    return rows.exclude(keptdiagnosis__step=F("last_step"), keptdiagnosis__version=version)


def ill_conversations(provider: str = "") -> Iterator[IllConversation]:
    """Yield each conversation that has a problem for any provider, sorted by ID.

    Each diagnosis is limited to the given `provider`, or to the providers in use if `provider` is
    "". So a diagnosis may have no problems.
    """
    made = choices().naming(provider)
    rows = _minded("").select_related("keptdiagnosis").order_by("id")
    return (_read(row, made) for row in rows.iterator())


def _minded(id_prefix: str) -> MemoryQuerySet:
    """Return the conversations that have a problem for any provider, in use or not."""
    rows: MemoryQuerySet = Memory.objects.beginning_with(id_prefix)
    return rows.filter(keptdiagnosis__ill_at__isnull=False)


def _read(row: Memory, made: Choices) -> IllConversation:
    kept = row.keptdiagnosis
    try:
        return IllConversation(memory_row(row), kept_diagnosis(kept).under(made.of(row.pk)))
    except CorruptRow as error:
        return IllConversation(memory_row(row), Diagnosis(kept.step), str(error))


def _kept(rows: MemoryQuerySet) -> Iterator[tuple[str, Diagnosis]]:
    """Yield the stored diagnoses that can be read, the newest case first."""
    newest = rows.order_by("-keptdiagnosis__ill_at", "-id")[:READ_AT_ONCE]
    columns = ("id", "keptdiagnosis__step", "keptdiagnosis__content")
    for memory_id, step, content in newest.values_list(*columns).iterator():
        try:
            yield memory_id, Diagnosis.from_list(step, json.loads(content))
        except (ValueError, TypeError, LookupError, AttributeError):
            continue  # the list of conversations shows it as unreadable


# Causes


@dataclass(frozen=True)
class Case:
    """A conversation with a problem, as diagnosed at a step."""

    memory_id: str
    problem: Problem
    step: int

    @property
    def query(self) -> str:
        """The query string that makes the conversation page show the step at which the problem
        began; "" if unknown.
        """
        return f"?at={self.problem.since}" if self.problem.since else ""


@dataclass(frozen=True)
class Issue:
    """A rule that windows break, with the providers that reject or mishandle these windows: a line
    of the doctor's page.

    - `severity` is refused or mishandled.
    - `providers` is empty for a rule that only warns, because every provider accepts the windows.
      Then `severity` is mishandled.
    - `cases` are the conversations with such a window, the newest problem first.
    """

    rule: str
    providers: tuple[str, ...]
    severity: str
    cases: Sequence[Case]

    @property
    def id(self) -> str:
        return "-".join((self.rule, self.severity or "warned", *self.providers))

    @property
    def times(self) -> list[datetime]:
        return [case.problem.at for case in self.cases if case.problem.at]

    @property
    def newest(self) -> datetime | None:
        return max(self.times, default=None)

    @property
    def repairable_for(self) -> str:
        """The first of `providers` for which a repair would solve the problem of at least one case;
        "" if there is none.
        """
        repairable = {name for case in self.cases for name in case.problem.repairable_for}
        return next((name for name in self.providers if name in repairable), "")


def prevention_in(rule: str, memory_ids: Iterable[str]) -> str:
    """Return advice on how the given conversations can avoid breaking a rule in future, or "".

    Advice that names an option of a policy is left out if none of the conversations has a policy.
    """
    if not RULES[rule].by_policy:
        return prevention_for(rule, have_policy=False)
    rows = Memory.objects.filter(database.in_list("id", memory_ids))
    return prevention_for(rule, rows.exclude(policy_kind=None).exists())


def prevention_for(rule: str, have_policy: bool) -> str:
    """Return advice on how to avoid breaking a rule; "" if there is none.

    `have_policy` tells whether the conversations have a policy. Without a policy, advice that names
    an option of a policy is left out.
    """
    found = RULES[rule]
    return "" if found.by_policy and not have_policy else found.prevention


def by_day(times: Iterable[datetime], today: datetime) -> list[int]:
    """Return how many of the times fall on each of the last 14 days, today last. `today` is the
    beginning of today.
    """
    ages = Counter((today - at).days + 1 if at < today else 0 for at in times)
    return [ages[age] for age in range(DAYS - 1, -1, -1)]


@dataclass(frozen=True)
class Issues:
    """The causes of problems: `used` for the providers in use, and `unused` for all other
    providers.

    `refused` is the number of conversations that a provider in use rejects. `refused_elsewhere` is
    the number that a provider not in use rejects.
    """

    used: Sequence[Issue]
    unused: Sequence[Issue]
    refused: int = 0  # conversations that a provider in use refuses
    refused_elsewhere: int = 0


def issues(id_prefix: str = "") -> Issues:
    """Return the causes for which providers would reject or mishandle windows."""
    made = choices()
    used, unused = _Causes(), _Causes()
    for memory_id, diagnosis in _kept(_minded(id_prefix)):
        use = made.of(memory_id)
        used.add(memory_id, diagnosis.under(use))
        unused.add(memory_id, diagnosis.under(use.others))
    return Issues(used.issues(), unused.issues(), len(used.refused), len(unused.refused))


class _Causes:
    """Collects cases, and groups them by rule, providers and severity."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str], dict[str, dict[str, Case]]] = {}
        self.refused: set[str] = set()

    def add(self, memory_id: str, found: Diagnosis) -> None:
        for problem in found.listed:
            case = Case(memory_id, problem, found.step)
            minding = {name: problem.severity_for(name) for name in PROVIDERS}
            minding = minding if any(minding.values()) else {"": "mishandled"}
            for name, severity in minding.items():
                if severity in ("refused", "mishandled"):
                    of_rule = self._cases.setdefault((problem.rule, severity), {})
                    of_rule.setdefault(name, {})[memory_id] = case
                    self.refused.update([memory_id] if severity == "refused" else ())

    def issues(self) -> list[Issue]:
        """Return the causes, rejections first. Providers that reject the same conversations for a
        rule are named together in one cause.
        """
        found = []
        for (rule, severity), by_provider in self._cases.items():
            if RULES[rule].laws:
                by_provider = {name: cases for name, cases in by_provider.items() if name}
            alike: dict[frozenset[str], list[str]] = {}
            for name, cases in by_provider.items():
                alike.setdefault(frozenset(cases), []).append(name)
            for names in alike.values():
                of_these = tuple(by_provider[names[0]].values())
                found.append(Issue(rule, tuple(filter(None, names)), severity, of_these))
        oldest = datetime.min.replace(tzinfo=UTC)
        found.sort(key=lambda each: each.newest or oldest, reverse=True)
        return sorted(found, key=lambda each: each.severity != "refused")


def would_find(use: InUse) -> dict[str, int]:
    """Return how many conversations each of the given providers would reject; empty if no
    conversation has been examined yet.
    """
    counts: Counter[str] = Counter(dict.fromkeys(use.providers, 0))
    for _, diagnosis in _kept(_minded("")):
        counts.update(diagnosis.under(use).refused_by)
    is_known = any(counts.values()) or not is_unexamined(unexamined().count())
    return dict(counts) if is_known else {}


def would_find_beside(examples: Collection[str]) -> dict[str, int]:
    """Return how many conversations each provider would reject. The numbers include the example
    conversations.

    The result is empty if no conversation other than the examples would be rejected. `examples` are
    the IDs of the examples.
    """
    counts: Counter[str] = Counter(dict.fromkeys(ALL.providers, 0))
    has_others = False
    for memory_id, diagnosis in _kept(_minded("")):
        refused_by = diagnosis.under(ALL).refused_by
        counts.update(refused_by)
        has_others |= bool(refused_by) and memory_id not in examples
    return dict(counts) if has_others else {}


def conversations_by_provider() -> dict[str, int]:
    """Return the number of conversations that use each provider. A provider counts only if it can
    be recognized in the conversation's messages.
    """
    rows = KeptDiagnosis.objects.filter(seen__gt=0).values_list("seen").annotate(n=Count("memory"))
    counts = list(rows.order_by())
    return {name: sum(n for bits, n in counts if bits & bit) for name, bit in BITS.items()}


def missed_steps(ids: Sequence[str], lately: int) -> dict[str, int]:
    """Return, by conversation ID, the newest step that added a message which left memory in the
    same step.

    Only the last `lately` steps of each conversation count. Conversations without such a step are
    left out.
    """
    rows = KeptDiagnosis.objects.filter(memory__in=ids, missed_step__isnull=False)
    rows = rows.filter(Q(missed_step__gt=F("memory__last_step") - lately))
    steps = rows.values_list("memory", "missed_step")
    return {memory: step for memory, step in steps if step is not None}
