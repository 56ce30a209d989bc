"""What another policy would do to a conversation's memory, before it is set."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory import Policy, explain
from chatmemory.explain import counted
from chatmemory.queries import Simulation, WindowPlace, WindowView
from inspector.conversation.measures import load_in


@dataclass(frozen=True)
class PolicyChange:
    """The presenter of a change from one policy to another."""

    window: WindowView[WindowPlace]
    simulation: Simulation

    @property
    def policy(self) -> Policy:
        return self.simulation.policy

    @property
    def is_none(self) -> bool:
        return self.policy == self.window.policy

    @property
    def name(self) -> str:
        return explain.policy_words(self.policy)

    @property
    def leaving(self) -> list[int]:
        """The messages that the next add would evict."""
        left = {place.seq for place in self.simulation.remaining}
        return [row.seq for row in self.window.rows if row.seq not in left]

    @property
    def returning(self) -> list[int]:
        """The messages that the policy before hid and that no add has evicted yet."""
        shown = {row.seq for row in self.window.rows}
        return [place.seq for place in self.simulation.remaining if place.seq not in shown]

    @property
    def summary(self) -> str:
        """What the model would see after the change, in a sentence."""
        if self.leaving:
            many = counted(len(self.leaving), "message")
            return f"{many} would leave at the next add: {explain.seqs(self.leaving)}."
        if self.returning:
            come = "comes" if len(self.returning) == 1 else "come"
            many = counted(len(self.returning), "message")
            return f"{many} {come} back: {explain.seqs(self.returning)}."
        return "Nothing would leave, and nothing comes back."

    @property
    def load(self) -> int:
        return self.policy.load(*self.simulation.totals)

    @property
    def before(self) -> str:
        unit = self.window.policy.unit if self.window.policy else "tokens"
        return f"{load_in(self.window):,} {unit}"
