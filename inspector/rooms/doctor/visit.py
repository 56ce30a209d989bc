"""Which ill conversations the address of the doctor's page asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils.http import urlencode

from chatmemory import explain, queries
from chatmemory.queries import IllFilter
from inspector.overview.selection import Chip


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
    def providers(self) -> list[Chip]:
        return [
            self._choice("provider", name, explain.provider_names([name]), count)
            for name, count in self.counts.by_provider.items()
        ]

    @property
    def rules(self) -> list[Chip]:
        counts = self.counts.by_rule
        chosen = {} if self.rule in counts or not self.rule else {self.rule: 0}
        return [
            self._choice("rule", rule, explain.problem_title(rule), count)
            for rule, count in {**counts, **chosen}.items()
        ]

    def _choice(self, name: str, value: str, label: str, count: int) -> Chip:
        pressed = getattr(self, name) == value
        then = replace(self, **{name: "" if pressed else value})
        return Chip(label, count, pressed, f"?{urlencode(then.given)}")
