"""What another policy would do to a conversation's memory, before it is set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from chatmemory import Policy, explain, queries
from chatmemory.explain import counted
from chatmemory.queries import Simulation, WindowPlace, WindowView, seqs_of
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

    @cached_property
    def leaving(self) -> list[int]:
        """The messages that the next add would evict."""
        left = set(seqs_of(self.simulation.remaining))
        return [seq for seq in self.window.seqs if seq not in left]

    @cached_property
    def returning(self) -> list[int]:
        """The messages that the policy before hid and that no add has evicted yet."""
        shown = set(self.window.seqs)
        return [seq for seq in seqs_of(self.simulation.remaining) if seq not in shown]

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


def policy_change(memory_id: str, policy: Policy, recount: bool) -> PolicyChange:
    """Return what a policy would change; see `queries.simulate` for `recount` and exceptions."""
    simulation = queries.simulate(memory_id, (), policy, recount=recount)
    return PolicyChange(queries.outline(memory_id), simulation)
