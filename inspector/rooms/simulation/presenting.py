"""Presents simulations on the conversation page: what each draft would do to memory, in words and
in sizes. While somebody writes in the composer, the page also shows what the text would do.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from chatmemory import ChatMessage, Policy, load_or_tokens, text_of
from chatmemory.explain import captions
from chatmemory.explain.captions import Caption
from chatmemory.explain.receipts import Receipt, receipt
from chatmemory.reading.simulation import Outlook, Simulation
from inspector.conversation import forecasts
from inspector.conversation.looks import STYLES
from inspector.conversation.measures import unit_of
from inspector.rooms.simulation.trials import WhatIf
from inspector.shell.state import ConversationState


class SimulationView:
    """Presents the conversation page during a simulation of drafts or of another limit."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._changes = state.simulation.changes or ()

    @cached_property
    def caption(self) -> Caption:
        change = self._state.change
        if change is None or change is self._state.simulation.trim:
            policy = self._state.window.policy
            return forecasts.tried_limit(
                policy.limit if policy else 0, self._state.simulation.outlook
            )
        drafts = len(self._state.simulation.drafts)
        event = f"Your {'draft' if drafts == 1 else f'{drafts:,} drafts'} would arrive"
        is_one = len(self._changes) == 1
        found = captions.caption(self._changes[0] if is_one else change)
        cleared = forecasts.would_clear(self._state.simulation.outlook)
        return replace(found, event=event, detail=" ".join(filter(None, [found.detail, cleared])))

    @property
    def previews(self) -> list[tuple[Caption, Receipt]]:
        """A caption for each draft, with its arithmetic: the size of memory before, what arrives
        and leaves, and the size after.

        Without drafts, there is only a caption for the limit, if this limit evicts messages.
        """
        if self._state.simulation.trim:
            return [(self.caption, receipt(self._state.simulation.trim))]
        return [(captions.caption(change), lines) for change, lines in self._state.receipts]

    @property
    def verdict(self) -> Caption:
        """A caption that says what all drafts together, or the limit, would do to memory."""
        return forecasts.forecast(
            self._changes, self._state.simulation.outlook, self._state.window.policy
        )


class DraftRow:
    """A draft message as the page shows it. `seq` is negative, because drafts are not in history:
    -2 for the second draft.

    `tokens` is None for a draft that would change nothing.
    """

    def __init__(self, state: ConversationState, number: int, draft: ChatMessage) -> None:
        self.number, self.seq, self.text = number, -number, text_of(draft)
        self.look = STYLES[draft.type, draft.has_tool_execution_requests]
        tokens = (each.tokens for each in state.simulation.drafts if each.seq == self.seq)
        self.tokens = next(tokens, None)
        self.css = "is-sel" if state.query.msg == self.seq else ""


class Writing:
    """What the text in the composer would do to memory, while somebody writes it.

    `tokens` is the size of the text, and `verdict` says what would change. `before` and `after` are
    sizes of memory, in the unit of the policy's limit.
    """

    def __init__(self, policy: Policy, tokens: int, verdict: Caption, outlook: Outlook) -> None:
        self.tokens, self.verdict = tokens, verdict
        self.before = load_or_tokens(policy, outlook.before)
        self.after = load_or_tokens(policy, outlook.after)
        self.limit, self.unit = policy.limit, unit_of(policy.limit, policy.short_unit)


def writing(simulation: Simulation, first: int) -> Writing | None:
    """Return what the text in the composer would do to memory; None without a text.

    `first` is the index of the first draft that was made from this text. In the result, `tokens` is
    the size of this draft and all later drafts. The `verdict` is about the draft at the index
    `simulation.since` and all later drafts.
    """
    written, policy, outlook = simulation.changes[first:], simulation.policy, simulation.outlook()
    if not written:
        return None
    verdict = forecasts.forecast(simulation.changes[simulation.since :], outlook, policy)
    return Writing(policy, sum(change.gained for change in written), verdict, outlook)


def trying(state: ConversationState, trial: WhatIf | None) -> Writing | None:
    """Return what the drafts and the limit of a trial would do to memory. Pages show this while the
    composer has no text.

    None without a trial, or if the window has no policy. Also None if the trial has no limit and
    the simulation adds no drafts.
    """
    policy = state.window.policy
    if policy is None or trial is None or not (state.simulation.drafts or trial.limit):
        return None
    return Writing(policy, 0, SimulationView(state).verdict, state.simulation.outlook)
