"""Simulations: captions and receipts, the drafts, and what is being written in the composer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import explain, load_or_tokens, text_of
from chatmemory.explain import Caption, Receipt
from chatmemory.queries import ConversationState, Simulation
from chatmemory.services import ChangeResult
from inspector.conversation.rows import LOOKS


@dataclass(frozen=True)
class Preview:
    """The caption and the receipt of one draft."""

    caption: Caption
    receipt: Receipt


class SimulationView:
    """The presenter of a simulated state, with added drafts or another limit."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._changes = state.simulated or ()

    @cached_property
    def caption(self) -> Caption:
        change = self._state.change
        if change is None or change is self._state.trim:
            policy = self._state.window.policy
            return explain.tried_limit(policy.limit if policy else 0, self._state.outlook)
        drafts = len(self._state.drafts)
        event = f"Your {'draft' if drafts == 1 else f'{drafts:,} drafts'} would arrive"
        is_one = len(self._changes) == 1
        told = self.previews[0].caption if is_one else explain.caption(change)
        return replace(told, event=event)

    @cached_property
    def previews(self) -> list[Preview]:
        if self._state.trim:
            return [Preview(self.caption, explain.receipt(self._state.trim))]
        return [Preview(explain.caption(change), lines) for change, lines in self.receipts]

    @cached_property
    def receipts(self) -> list[tuple[ChangeResult, Receipt]]:
        """The changes with their receipts, which take a while if very many messages leave."""
        return [(change, explain.receipt(change)) for change in self._changes]

    @property
    def draft_tokens(self) -> int:
        return sum(draft.tokens for draft in self._state.drafts)

    @property
    def verdict(self) -> Caption:
        """The composer's verdict on all drafts, or on the limit."""
        return explain.forecast(self._changes, self._state.outlook, self._state.window.policy)


@dataclass(frozen=True)
class DraftRow:
    """A draft. `seq` is its number as a message that is not said: -2 for the second one."""

    number: int
    seq: int
    glyph: str
    role: str
    text: str
    tokens: int | None
    css: str


def draft_rows(state: ConversationState) -> list[DraftRow]:
    """Return the drafts of the trial; one that would change nothing has no tokens."""
    tokens = {draft.seq: draft.tokens for draft in state.drafts}
    rows = []
    for n, draft in enumerate(state.trial.drafts if state.trial else (), 1):
        look = LOOKS[draft.type, draft.has_tool_execution_requests]
        css = "is-sel" if state.query.msg == -n else ""
        row = DraftRow(n, -n, look.glyph, look.role, text_of(draft), tokens.get(-n), css)
        rows.append(row)
    return rows


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
