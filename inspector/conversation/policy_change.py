"""A preview of what another policy would change in memory."""

from __future__ import annotations

from chatmemory import Policy
from chatmemory.explain import receipts
from chatmemory.explain.wording import load_words, policy_words
from chatmemory.reading.simulation import simulate
from inspector.conversation.forecasts import change_of_policy


class PolicyChange:
    """What another policy would change in the messages that the model sees.

    If the policy has another estimator, all messages in memory must be counted again. Raises
    LongRecount if more than 5,000 messages must be counted and `recount` is False. Also raises the
    other exceptions of `simulation.simulate`.
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
