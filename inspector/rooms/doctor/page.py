"""What the doctor's page says: a heading, and a line for each cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory.core.lint import PROVIDERS, RULES
from inspector.rooms.doctor import words
from inspector.rooms.doctor.choosing import Choices, choices
from inspector.rooms.doctor.reads import (
    Case,
    Issue,
    Issues,
    doctor_counts,
    issues,
    unexamined,
    would_find,
)
from inspector.rooms.doctor.using import ALL
from inspector.rooms.doctor.visit import Visit
from inspector.shell.days import Bar, bars_of

SHOWN = 7  # conversations of a cause


@dataclass(frozen=True)
class Line:
    """A cause as a line of the page, which opens to its conversations."""

    issue: Issue
    midnight: datetime
    is_used: bool

    @property
    def title(self) -> str:
        return words.issue_title(self.issue)

    @property
    def is_red(self) -> bool:
        """Whether windows would fail now at a provider in use."""
        return self.is_used and self.issue.severity == "refused"

    @property
    def why(self) -> str:
        return words.issue_why(self.issue)

    @property
    def new(self) -> int:
        return self.issue.new_since(self.midnight)

    @property
    def bars(self) -> list[Bar]:
        return bars_of(self.issue.by_day(self.midnight))

    @property
    def rows(self) -> list[tuple[Case, str]]:
        shown = self.issue.cases[:SHOWN]
        return [(case, words.how_it_began(case.problem, case.step)) for case in shown]

    @property
    def more(self) -> int:
        return len(self.issue.cases) if len(self.issue.cases) > SHOWN else 0

    @property
    def verb(self) -> str:
        """What would mend it; empty where no repair does."""
        return words.verb_of(self.issue) if self.issue.severity == "refused" else ""

    @property
    def prevention(self) -> str:
        return RULES[self.issue.rule].prevention

    @property
    def provider(self) -> str:
        return self.issue.providers[0] if self.issue.providers else ""

    @property
    def address(self) -> str:
        """The list of the conversations of this cause."""
        given = {"provider": self.provider, "rule": self.issue.rule}
        return f"{reverse('inspector:doctor')}?{urlencode({k: v for k, v in given.items() if v})}"


class DoctorPage:
    """All causes, those of providers in use first."""

    def __init__(self, midnight: datetime) -> None:
        self._midnight = midnight
        self.made: Choices = choices()
        self._issues: Issues = issues()
        self.refused = self._issues.refused
        self.changed = unexamined().count()

    @property
    def used(self) -> list[Line]:
        is_used = self.made.is_made
        return [Line(each, self._midnight, is_used) for each in self._issues.used]

    @property
    def unused(self) -> list[Line]:
        return [Line(each, self._midnight, is_used=False) for each in self._issues.unused]

    @property
    def elsewhere(self) -> int:
        """How many more conversations other providers would refuse."""
        return self._issues.refused_elsewhere

    @property
    def in_use(self) -> str:
        return words.in_use(self.made)

    @property
    def not_in_use(self) -> str:
        named = self.made.everywhere.providers
        return ", ".join(label for name, label in PROVIDERS.items() if name not in named)

    @cached_property
    def asked(self) -> Sequence[words.ProviderRow]:
        """The question that stands where nobody has chosen, with what each provider would find."""
        return words.provider_rows(None, would_find(ALL))


class CausePage:
    """The heading of a list of conversations with one cause."""

    def __init__(self, visit: Visit) -> None:
        self.title = words.cause_title(visit.provider, visit.rule)
        self.prevention = RULES[visit.rule].prevention if visit.rule else ""
        self.verb = words.verb(visit.rule) if visit.rule else "Repair these…"
        counts = doctor_counts("", visit.which.choices)
        self.count: int = counts.by_rule.get(visit.rule, 0) if visit.rule else counts.refused
        self.is_mendable = not visit.rule or bool(RULES[visit.rule].repairs)
