"""The conversation page as it would be: drafts added, evictions shown, nothing saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils import timezone

from chatmemory import explain, queries, services
from chatmemory.core.codec import message_to_json
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.policies import Policy
from chatmemory.explain import Caption, ReceiptLine
from chatmemory.queries import (
    Departure,
    MessageRow,
    StepRow,
    StepView,
    TapeCell,
    WindowPlace,
    WindowView,
)
from chatmemory.services import ChangeResult, Simulation
from inspector.conversation.page import ConversationPage
from inspector.conversation.rows import short_reason
from inspector.conversation.state import NEXT_ADD
from inspector.conversation.timeline import Tape, draw
from inspector.templatetags.inspector import SHOWN


@dataclass(frozen=True)
class Preview:
    """One draft's sentence and sum."""

    words: str
    receipt: tuple[ReceiptLine, ...]


class SimulatedPage(ConversationPage):
    """The page at step `at` (None: live) with drafts added under its policy or another.

    Raises what `services.simulate` raises.
    """

    is_simulation = True

    def __init__(
        self,
        memory_id: str,
        messages: Sequence[ChatMessage],
        policy: Policy | None,
        at: int | None = None,
    ) -> None:
        super().__init__(memory_id, at=at, msg=None)
        self._said_before = super().said_count
        simulation = services.simulate(memory_id, messages, policy, at)
        self.before = self.load
        self._outcomes = simulation.changes
        self._departed = {left.seq: left.reason for each in self._outcomes for left in each.evicted}
        window, self.window = self.window, _foreseen(self.window, simulation)
        self.drafts = _drafts(memory_id, messages, self._outcomes)
        self.in_window = {row.seq for row in self.window.rows}
        self._hidden = [
            row.seq for row in window.rows if row.seq not in {*self.in_window, *self._departed}
        ]
        texts = queries.beginnings(memory_id, set(self._departed), SHOWN + 1)
        texts |= {draft.seq: draft.text for draft in self.drafts}
        self._views = [_view(outcome, self.drafts, texts) for outcome in self._outcomes]
        self.view = self._whole_view()

    def _whole_view(self) -> StepView | None:
        """All drafts as one step, for the sentence above the tape."""
        if not self._views:
            return None
        arrivals = tuple(row for view in self._views for row in view.arrivals)
        departures = tuple(departure for view in self._views for departure in view.departures)
        return StepView(self._views[-1].step, arrivals, departures, 0)

    @cached_property
    def tape(self) -> Tape:
        """With the drafts as cells behind the playhead."""
        return draw(
            self.samples,
            at=self.at,
            limit=self.limit,
            in_window=self.in_window,
            unit=self.unit,
            drafts=self._cells,
            leaving=set(self._departed),
        )

    @cached_property
    def _cells(self) -> list[TapeCell]:
        after = {each.seq: each.after for each in self._outcomes if each.seq is not None}
        history, cells = super().history_load, []
        for n, draft in enumerate(self.drafts, 1):
            history += self._weight(draft)
            totals = after[draft.seq]
            cells.append(
                TapeCell(
                    step=self.at + n,
                    load=self.policy.load(*totals) if self.policy else totals.tokens,
                    history=history,
                    seq=draft.seq,
                    type=draft.type,
                    has_calls=draft.has_calls,
                    tokens=draft.tokens,
                    left_step=None,
                )
            )
        return cells

    def _weight(self, draft: MessageRow) -> int:
        """What it adds to the history, in the policy's unit."""
        return 1 if self.unit == "msg" else draft.tokens

    @property
    def history_load(self) -> int:
        return super().history_load + sum(map(self._weight, self.drafts))

    def leaves_now(self, row: MessageRow) -> bool:
        return row.seq in self._departed

    def tag(self, row: MessageRow) -> str:
        reason = self._departed.get(row.seq)
        if reason is not None:
            return f"forgotten in the simulation · {short_reason(reason)}"
        words = super().tag(row)
        return "would leave" if words == NEXT_ADD else words

    @cached_property
    def caption(self) -> Caption:
        if self.view is None:
            hidden = len(self._hidden)
            words = f"{hidden:,} message{'s' if hidden != 1 else ''} would leave at the next add"
            return Caption(
                f"With a limit of {self.limit or 0:,}", loss=words if hidden else "", detail=""
            )
        drafts = len(self.drafts)
        event = "Your draft arrived" if drafts == 1 else f"Your {drafts:,} drafts arrived"
        return replace(explain.caption(self.view), event=event)

    @property
    def previews(self) -> list[Preview]:
        return [
            Preview(explain.caption(view).summary, explain.receipt(view)) for view in self._views
        ]

    @property
    def draft_tokens(self) -> int:
        return sum(draft.tokens for draft in self.drafts)

    @property
    def verdict(self) -> Caption:
        """What the composer says: conditional, since nothing has happened."""
        seqs = list(self._departed) or self._hidden
        if not seqs:
            return Caption("Fits", detail="Nothing would leave.")
        noun = f"{len(seqs):,} message{'s' if len(seqs) != 1 else ''}"
        return Caption("Would evict", loss=noun, detail=explain.seqs(seqs))

    @property
    def said_count(self) -> int:
        return self._said_before


def _foreseen(window: WindowView[WindowPlace], simulation: Simulation) -> WindowView[WindowPlace]:
    entered = {row.seq: row.entered_step for row in (*window.rows, *window.over_limit)}
    places = (
        WindowPlace(each.seq, entered.get(each.seq, 0), each.type, each.has_calls, each.tokens)
        for each in simulation.remaining
    )
    return replace(window, policy=simulation.policy, rows=tuple(places), over_limit=())


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], outcomes: Sequence[ChangeResult]
) -> list[MessageRow]:
    now = timezone.now()
    return [
        MessageRow(
            memory_id=memory_id,
            seq=outcome.seq,
            type=message.type,
            has_calls=message.has_tool_execution_requests,
            text=text_of(message),
            payload=message_to_json(message),
            tokens=outcome.tokens,
            origin="DRAFT",
            said_at=now,
            client_id=None,
        )
        for message, outcome in zip(messages, outcomes, strict=True)
        if outcome.seq is not None
    ]


def _view(outcome: ChangeResult, drafts: Sequence[MessageRow], texts: dict[int, str]) -> StepView:
    """One simulated step, as if it stood in the ledger."""
    step = StepRow(
        n=outcome.step or 0,
        kind=outcome.kind,
        at=timezone.now(),
        actor="",
        by_client=False,
        policy=outcome.policy,
        estimator=outcome.policy.estimator if outcome.policy else "",
        before=outcome.before,
        after=outcome.after,
        history_tokens=0,
        said_count=0,
        last_seq=0,
        last_stay=0,
        oldest=0,
        note="",
    )
    departures = tuple(
        Departure(
            seq=left.seq,
            type=left.type,
            has_calls=left.has_calls,
            tokens=left.tokens,
            text=texts[left.seq],
            reason=left.reason,
            entered_step=0,
            because_seq=left.because_seq,
        )
        for left in outcome.evicted
    )
    arrivals = tuple(draft for draft in drafts if draft.seq == outcome.seq)
    return StepView(step, arrivals, departures, 0)
