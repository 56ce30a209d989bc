"""The conversation page as it would be: drafts added, evictions shown, nothing saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from django.utils import timezone

from chatmemory import explanations, services
from chatmemory.core.codec import message_to_json
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.policies import Policy
from chatmemory.core.windows import Totals
from chatmemory.explanations import Caption, ReceiptLine
from chatmemory.queries import Departure, MessageRow, StepRow, StepView, WindowRow, WindowView
from inspector.conversation import ConversationPage


@dataclass(frozen=True)
class Preview:
    """One draft's sentence and sum."""

    words: str
    receipt: tuple[ReceiptLine, ...]


class SimulatedPage(ConversationPage):
    """The live page with drafts added under its policy or another.

    Raises what `services.simulate` raises.
    """

    is_simulation = True

    def __init__(self, memory_id: str, messages: list[ChatMessage], policy: Policy | None) -> None:
        super().__init__(memory_id, at=None, msg=None)
        simulation = services.simulate(memory_id, messages, policy)
        self.before = self.load
        stored = {row.seq: row for row in (*self.window.rows, *self.window.beyond)}
        self.drafts = _drafts(self.memory.messages, messages, simulation.outcomes)
        rows = stored | {draft.seq: _window_row(draft) for draft in self.drafts}
        self.views = [_view(outcome, rows, self.drafts) for outcome in simulation.outcomes]
        self.window = WindowView(
            memory_id,
            self.at,
            simulation.policy,
            rows=tuple(rows[seq] for seq in simulation.seqs),
            beyond=(),
        )
        self.in_window = set(simulation.seqs)
        self.departed = [d for view in self.views for d in view.departures]
        hidden = [row for seq, row in stored.items() if seq not in self.in_window]
        self.hidden = [row for row in hidden if row.seq not in {d.seq for d in self.departed}]
        self.view = self._whole_view()

    def _whole_view(self) -> StepView | None:
        """All drafts as one step, for the sentence above the tape."""
        if not self.views:
            return None
        last = self.views[-1].step
        arrivals = tuple(row for view in self.views for row in view.arrivals)
        return StepView(last, arrivals, tuple(self.departed), 0)

    @property
    def is_draft(self) -> set[int]:
        return {draft.seq for draft in self.drafts}

    @cached_property
    def caption(self) -> Caption:
        if not self.views:
            hidden = len(self.hidden)
            words = f"{hidden:,} message{'s' if hidden != 1 else ''} would leave at the next add"
            return Caption(
                f"With a limit of {self.limit or 0:,}", loss=words if hidden else "", detail=""
            )
        assert self.view is not None
        drafts = len(self.drafts)
        event = "Your draft arrived" if drafts == 1 else f"Your {drafts:,} drafts arrived"
        return replace(explanations.caption(self.view), event=event)

    @property
    def said_count(self) -> int:
        return self.memory.said_count

    @property
    def previews(self) -> list[Preview]:
        return [
            Preview(explanations.caption(view).words, explanations.receipt(view))
            for view in self.views
        ]

    @property
    def draft_tokens(self) -> int:
        return sum(draft.tokens for draft in self.drafts)

    @property
    def verdict(self) -> Caption:
        """What the composer says: conditional, since nothing has happened."""
        count = len(self.departed) or len(self.hidden)
        if not count:
            return Caption("Fits", detail="Nothing would leave.")
        seqs = explanations.seqs([each.seq for each in self.departed or self.hidden])
        noun = f"{count:,} message{'s' if count != 1 else ''}"
        return Caption("Would evict", loss=noun, detail=seqs)

    @property
    def ghosts_when(self) -> str:
        return "if this is added"


def _drafts(
    newest: int, messages: list[ChatMessage], outcomes: tuple[services.Outcome, ...]
) -> list[MessageRow]:
    now = timezone.now()
    return [
        MessageRow(
            seq=outcome.seq,
            type=message.type,
            text=text_of(message),
            payload=message_to_json(message),
            message=message,
            tokens=outcome.tokens,
            origin="DRAFT",
            said_at=now,
            client_id=None,
        )
        for message, outcome in zip(messages, outcomes, strict=True)
        if outcome.seq is not None
    ]


def _window_row(draft: MessageRow) -> WindowRow:
    return WindowRow(
        seq=draft.seq,
        stay=0,
        entered_step=0,
        type=draft.type,
        tokens=draft.tokens,
        text=draft.text,
        payload=draft.payload,
        message=draft.message,
    )


def _view(
    outcome: services.Outcome, rows: dict[int, WindowRow], drafts: list[MessageRow]
) -> StepView:
    """One simulated step, as if it stood in the ledger."""
    step = StepRow(
        n=outcome.step or 0,
        kind=outcome.change,
        at=timezone.now(),
        actor="",
        by_client=False,
        policy=outcome.policy,
        estimator=outcome.policy.estimator if outcome.policy else "",
        before=Totals(*outcome.before),
        after=Totals(*outcome.after),
        history_tokens=0,
        said_count=0,
        messages=0,
        stays=0,
        oldest=0,
        note="",
    )
    departures = tuple(
        Departure(
            seq=left.seq,
            type=left.type,
            has_calls=rows[left.seq].message.has_tool_execution_requests,
            tokens=left.tokens,
            text=rows[left.seq].text,
            message=rows[left.seq].message,
            reason=left.reason,
            entered_step=rows[left.seq].entered_step,
            because_seq=left.because_seq,
        )
        for left in outcome.left
    )
    arrivals = tuple(draft for draft in drafts if draft.seq == outcome.seq)
    return StepView(step, arrivals, departures, 0)
