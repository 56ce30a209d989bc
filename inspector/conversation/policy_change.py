"""What another policy would do to a conversation's memory, before it is set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from chatmemory import Policy, explain, queries
from chatmemory.explain import Receipt
from chatmemory.queries import Simulation


@dataclass(frozen=True)
class PolicyChange:
    """The presenter of a change from one policy to another, in what the model sees."""

    simulation: Simulation

    @property
    def policy(self) -> Policy:
        return self.simulation.policy

    @property
    def is_none(self) -> bool:
        return self.policy == self.simulation.seen.policy

    @property
    def name(self) -> str:
        return explain.policy_words(self.policy, self.simulation.seen.policy)

    @property
    def summary(self) -> str:
        """What would leave at the next add, or come back, in sentences."""
        return explain.change_of_policy(self.simulation.outlook())

    @cached_property
    def receipt(self) -> Receipt:
        """The arithmetic of what would leave at the next add; empty if nothing would."""
        return explain.receipt(self.simulation.trim) if self.simulation.trim else ()

    @property
    def after(self) -> str:
        """What the model would see after the change, with its unit."""
        return explain.load_words(self.policy, self.simulation.totals)

    @property
    def before(self) -> str:
        """What the model sees now, with its unit."""
        seen = self.simulation.seen
        return explain.load_words(seen.policy, seen.totals)


def policy_change(memory_id: str, policy: Policy, recount: bool) -> PolicyChange:
    """Return what a policy would change; see `queries.simulate` for `recount` and exceptions."""
    return PolicyChange(queries.simulate(memory_id, (), policy, recount=recount))
