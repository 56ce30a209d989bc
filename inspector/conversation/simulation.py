"""The results of a simulation: captions, receipts and the composer's verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import explain
from chatmemory.explain import Caption, Receipt
from chatmemory.queries import ConversationState
from chatmemory.services import ChangeResult


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
