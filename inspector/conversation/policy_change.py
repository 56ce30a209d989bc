"""A preview of what another policy would change in memory."""

from __future__ import annotations

from chatmemory import Policy
from chatmemory.explain import receipts
from chatmemory.explain.wording import load_words, policy_words
from chatmemory.reading.simulation import simulate
from inspector.conversation.forecasts import change_of_policy


class PolicyChange:
    """What another policy would change in the messages that the model sees.

    If the other policy has another estimator, all messages must be counted again. More than 5,000
    messages are only counted again with `recount`; without it, LongRecount is raised. Also raises
    the other exceptions of `simulation.simulate`.
    """

    def __init__(self, memory_id: str, policy: Policy, recount: bool) -> None:
        simulation = simulate(memory_id, (), policy, recount=recount)
        window, trim = simulation.window_before, simulation.trim
        self.is_none = simulation.policy == window.policy
        self.name = policy_words(simulation.policy, window.policy)
        self.summary = change_of_policy(simulation.outlook())  # at the next add
        self.receipt = receipts.receipt(trim) if trim else ()
        self.before = load_words(window.policy, window.totals)
        self.after = load_words(simulation.policy, simulation.totals)
