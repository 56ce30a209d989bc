"""The results of a simulation: captions, receipts and the composer's verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import explain
from chatmemory.explain import Caption, Receipt, counted
from chatmemory.queries import ConversationState
from inspector.conversation.measures import load_in


@dataclass(frozen=True)
class Preview:
    """The caption and the receipt of one draft."""

    caption: Caption
    receipt: Receipt | tuple[()]


class SimulationView:
    """The presenter of a simulated state, with added drafts or another limit."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._changes = state.simulated or ()

    @property
    def before(self) -> int:
        """The load of memory before the simulation."""
        return load_in(self._state.stored_window)

    @cached_property
    def caption(self) -> Caption:
        if self._state.change is None:
            hidden = len(self._hidden)
            loss = f"{counted(hidden, 'message')} would leave at the next add" if hidden else ""
            policy = self._state.window.policy
            return Caption(f"With a limit of {policy.limit if policy else 0:,}", loss=loss)
        drafts = len(self._state.drafts)
        event = "Your draft arrived" if drafts == 1 else f"Your {drafts:,} drafts arrived"
        is_one = len(self._changes) == 1
        told = self.previews[0].caption if is_one else explain.caption(self._state.change)
        return replace(told, event=event)

    @cached_property
    def previews(self) -> list[Preview]:
        return [Preview(explain.caption(each), explain.receipt(each)) for each in self._changes]

    @property
    def draft_tokens(self) -> int:
        return sum(draft.tokens for draft in self._state.drafts)

    @property
    def verdict(self) -> Caption:
        """The composer's verdict on all drafts, or on the limit."""
        return explain.forecast(self._changes, self._hidden)

    @cached_property
    def _hidden(self) -> list[int]:
        """The messages that the limit would hide without any draft."""
        left = self._state.in_window | self._state.evicted.keys()
        return [seq for seq in self._state.stored_window.seqs if seq not in left]
