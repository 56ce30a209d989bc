"""The URL parameters of the doctor's page: a cause, and a page of its conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chatmemory.lint import PROVIDERS
from inspector.rooms.doctor.diagnosis import listed_rules
from inspector.rooms.doctor.reads import IllFilter


@dataclass(frozen=True)
class Visit:
    """The provider, the rule and the page cursor from a URL. Unknown values are ignored."""

    provider: str = ""
    rule: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Visit:
        provider, rule = parameters.get("provider", ""), parameters.get("rule", "")
        return cls(
            provider if provider in PROVIDERS else "",
            rule if rule in listed_rules() else "",
            parameters.get("older") or parameters.get("newer") or "",
        )

    @property
    def which(self) -> IllFilter:
        return IllFilter(self.rule, self.provider)

    @property
    def parameters(self) -> dict[str, str]:
        values = {"provider": self.provider, "rule": self.rule}
        return {name: value for name, value in values.items() if value}
