"""What the doctor's page shows: which ill conversations its address asks for, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils.http import urlencode

from chatmemory import explain, queries
from chatmemory.queries import IllConversation, IllFilter, Problem


@dataclass(frozen=True)
class Sign:
    """A problem of a conversation in words, with the step at which it began."""

    problem: Problem

    @property
    def title(self) -> str:
        return explain.problem_title(self.problem.rule)

    @property
    def since(self) -> int:
        return self.problem.since

    @property
    def how(self) -> str:
        return explain.how_it_began(self.problem)

    @property
    def is_refused(self) -> bool:
        return bool(self.problem.refused_by)


@dataclass(frozen=True)
class Patient:
    """A row of the list."""

    ill: IllConversation
    provider: str

    @property
    def signs(self) -> list[Sign]:
        return [Sign(each) for each in self.ill.problems]

    @property
    def refused_by(self) -> str:
        return explain.provider_names(self.ill.refused_by)

    @property
    def repaired_for(self) -> str:
        return self.provider or next(iter(self.ill.refused_by), "openai")


@dataclass(frozen=True)
class Choice:
    """A filter with its number of conversations, and the query string that sets or removes it."""

    label: str
    count: int
    pressed: bool
    href: str


@dataclass(frozen=True)
class Visit:
    """The provider, the rule and the page that an address asks for. Unknown values are none."""

    provider: str = ""
    rule: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Visit:
        provider, rule = given.get("provider", ""), given.get("rule", "")
        return cls(
            provider if provider in queries.PROVIDERS else "",
            rule if rule in queries.PROBLEMS else "",
            given.get("older") or given.get("newer") or "",
        )

    @property
    def which(self) -> IllFilter:
        return IllFilter(self.rule, self.provider)

    @property
    def given(self) -> dict[str, str]:
        values = {"provider": self.provider, "rule": self.rule}
        return {name: value for name, value in values.items() if value}

    @cached_property
    def counts(self) -> queries.DoctorCounts:
        return queries.doctor_counts()

    @property
    def title(self) -> str:
        return explain.problem_title(self.rule) if self.rule else ""

    @property
    def providers(self) -> list[Choice]:
        return [
            self._choice("provider", name, explain.provider_names([name]), count)
            for name, count in self.counts.by_provider.items()
        ]

    @property
    def rules(self) -> list[Choice]:
        counts = self.counts.by_rule
        chosen = {} if self.rule in counts or not self.rule else {self.rule: 0}
        return [
            self._choice("rule", rule, explain.problem_title(rule), count)
            for rule, count in {**counts, **chosen}.items()
        ]

    def _choice(self, name: str, value: str, label: str, count: int) -> Choice:
        pressed = getattr(self, name) == value
        then = replace(self, **{name: "" if pressed else value})
        return Choice(label, count, pressed, f"?{urlencode(then.given)}")

    def page(self, **cursor: str | None) -> str | None:
        """Return the query string of the page at `older` or `newer`, or None without one."""
        places = {name: value for name, value in cursor.items() if value}
        return "?" + urlencode({**self.given, **places}) if places else None

    def patient(self, ill: IllConversation) -> Patient:
        return Patient(ill, self.provider)
