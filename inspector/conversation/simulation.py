"""The results of a simulation: captions, receipts and the composer's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import explain, load_or_tokens
from chatmemory.explain import Caption, ReceiptLine, counted
from chatmemory.queries import ConversationState, StepSample
from inspector.conversation.measures import cost, load_in


@dataclass(frozen=True)
class Preview:
    """The caption and the receipt of one draft."""

    summary: str
    receipt: tuple[ReceiptLine, ...]


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
        return replace(explain.caption(self._state.change), event=event)

    @property
    def previews(self) -> list[Preview]:
        return [
            Preview(explain.caption(change).summary, explain.receipt(change))
            for change in self._changes
        ]

    @property
    def draft_tokens(self) -> int:
        return sum(draft.tokens for draft in self._state.drafts)

    @property
    def load_of_drafts(self) -> int:
        """The load of the drafts in the policy's unit."""
        policy = self._state.window.policy
        return sum(cost(policy, draft.tokens) for draft in self._state.drafts)

    @property
    def verdict(self) -> Caption:
        """The composer's verdict, in the conditional because nothing has happened."""
        seqs: Sequence[int] = list(self._state.evicted) or self._hidden
        if not seqs:
            return Caption("Fits", detail="Nothing would leave.")
        loss = counted(len(seqs), "message")
        return Caption("Would evict", loss=loss, detail=explain.seqs(seqs))

    @property
    def _hidden(self) -> list[int]:
        """The messages that the limit would hide without any draft."""
        left = self._state.in_window | self._state.evicted.keys()
        return [row.seq for row in self._state.stored_window.rows if row.seq not in left]


def draft_samples(state: ConversationState) -> list[StepSample]:
    """Return the drafts as steps after the one on which the simulation is based."""
    policy = state.window.policy
    history = next((sample.history for sample in state.samples if sample.step == state.at), 0)
    after = {change.seq: change.after for change in state.simulated or ()}
    samples = []
    for n, draft in enumerate(state.drafts, 1):
        history += cost(policy, draft.tokens)
        totals = after[draft.seq]
        sample = StepSample(
            step=state.at + n,
            load=load_or_tokens(policy, totals),
            history=history,
            seq=draft.seq,
            type=draft.type,
            has_calls=draft.has_calls,
            tokens=draft.tokens,
        )
        samples.append(sample)
    return samples
