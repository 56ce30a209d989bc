"""The question whether a policy shall be in force in many conversations."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory import Policy, explain
from chatmemory.queries import PolicyAdoption
from inspector.lab.fleet_asked import FleetAsked


@dataclass(frozen=True)
class Adopting:
    preview: PolicyAdoption
    asked: FleetAsked
    policy: Policy

    @property
    def name(self) -> str:
        return explain.policy_words(self.policy)

    @property
    def hidden(self) -> list[tuple[str, str]]:
        return list(self.asked.given.items())

    @property
    def back(self) -> str:
        return self.asked.link()
