"""What is being written in the composer: its tokens, and what it would do."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory import explain, load_or_tokens
from chatmemory.explain import Caption
from chatmemory.queries import ConversationState, Simulation
from inspector.conversation.simulation import SimulationView


@dataclass(frozen=True)
class Writing:
    """The tokens of what is being written, its verdict, and the loads that the model sees before
    and after it.
    """

    tokens: int
    verdict: Caption
    before: int
    after: int
    limit: int
    unit: str


def writing(simulation: Simulation, first: int) -> Writing | None:
    """Return the tokens of the simulated messages from the position `first` on, and what those from
    `simulation.since` on would do; None if none is written.
    """
    written, policy = simulation.changes[first:], simulation.policy
    if not written:
        return None
    outlook = simulation.outlook()
    return Writing(
        tokens=sum(change.gained for change in written),
        verdict=explain.forecast(simulation.changes[simulation.since :], outlook, policy),
        before=load_or_tokens(policy, outlook.before),
        after=load_or_tokens(policy, outlook.after),
        limit=policy.limit,
        unit=policy.short_unit,
    )


def trying(state: ConversationState) -> Writing | None:
    """Return what the drafts and the limit of a state's trial would do; None if nothing."""
    simulation, policy = SimulationView(state), state.window.policy
    if policy is None or state.trial is None or not (state.drafts or state.trial.limit):
        return None
    return Writing(
        tokens=simulation.draft_tokens,
        verdict=simulation.verdict,
        before=load_or_tokens(policy, state.outlook.before),
        after=load_or_tokens(policy, state.outlook.after),
        limit=policy.limit,
        unit=policy.short_unit,
    )
