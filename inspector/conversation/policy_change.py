"""What another policy would change."""

from __future__ import annotations

from chatmemory import Policy, explain, queries


class PolicyChange:
    """What another policy would change in what the model sees; see `queries.simulate` for `recount`
    and exceptions.
    """

    def __init__(self, memory_id: str, policy: Policy, recount: bool) -> None:
        simulation = queries.simulate(memory_id, (), policy, recount=recount)
        seen, trim = simulation.seen, simulation.trim
        self.is_none = simulation.policy == seen.policy
        self.name = explain.policy_words(simulation.policy, seen.policy)
        self.summary = explain.change_of_policy(simulation.outlook())  # at the next add
        self.receipt = explain.receipt(trim) if trim else ()
        self.before = explain.load_words(seen.policy, seen.totals)
        self.after = explain.load_words(simulation.policy, simulation.totals)
