"""The memory pane: the messages that the model sees, and those that just left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from chatmemory import Reason
from chatmemory.explain import short_reason
from chatmemory.queries import ConversationState, WindowPlace
from chatmemory.services import EvictedMessage
from inspector.conversation.glyphs import glyph
from inspector.conversation.history import related
from inspector.conversation.measures import cost, limit_of, load_in, overhead
from inspector.conversation.rows import (
    Elsewhere,
    Ghosts,
    MemoryRow,
    css_of,
    is_code,
    pairing,
)

GHOSTS_MAX = 5


class MemoryPane:
    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._rows = state.window.rows
        self._drafts = {draft.seq for draft in state.drafts}
        self._related = related(state)

    @cached_property
    def head(self) -> tuple[WindowPlace, ...]:
        """The rows pinned at the top: a leading system message, if there is one."""
        leading = self._state.window.leading_system
        return (leading,) if leading else ()

    @property
    def system(self) -> list[MemoryRow]:
        return self._kept(self.head, overhead(self._state.window.policy), "led--sys")

    @cached_property
    def messages(self) -> list[MemoryRow]:
        """The rows below the system message, or a part of them in a long window."""
        before = self._rows[: self._state.part.start]
        past = overhead(self._state.window.policy) + sum(map(self._cost, before))
        return self._kept(self._rows[self._state.part], past)

    @property
    def earlier(self) -> Elsewhere | None:
        rows = self._rows[len(self.head) : self._state.part.start]
        return _elsewhere(rows, rows[-1].seq) if rows else None

    @property
    def later(self) -> Elsewhere | None:
        rows = self._rows[self._state.part.stop :]
        return _elsewhere(rows, rows[0].seq) if rows else None

    @property
    def next_to_leave(self) -> WindowPlace | None:
        rows = self._rows[len(self.head) :]
        return rows[0] if rows and self._state.is_live and self._state.window.policy else None

    @property
    def room(self) -> int | None:
        """The room left under the limit, in the policy's unit."""
        limit = limit_of(self._state)
        return None if limit is None else max(0, limit - load_in(self._state.window))

    @property
    def bar_width(self) -> int:
        return limit_of(self._state) or max(1, load_in(self._state.window))

    @property
    def ghosts(self) -> Ghosts | None:
        change = self._state.change
        if change is None or not change.evicted:
            return None
        rows = tuple(map(self._ghost, change.evicted[:GHOSTS_MAX]))
        total = sum(message.tokens for message in change.evicted)
        return Ghosts(rows, len(change.evicted) - len(rows), -total)

    @property
    def ghosts_when(self) -> str:
        if self._state.is_simulated:
            return "if this is added"
        arrived = self._state.change.arrived if self._state.change else ()
        if len(arrived) == 1:
            return f"when #{arrived[0].seq} arrived"
        return f"at step {self._state.at:,}"

    def _cost(self, row: WindowPlace) -> int:
        return cost(self._state.window.policy, row.tokens)

    def _kept(self, rows: Sequence[WindowPlace], past: int, css: str = "") -> list[MemoryRow]:
        """Return the rows of the pane; `past` is the load of the rows above them."""
        kept = []
        for i, row in enumerate(rows):
            kept.append(self._row(row, css_of(css, pairing(rows, i)), past))
            past += self._cost(row)
        return kept

    def _row(self, row: WindowPlace, css: str, past: int) -> MemoryRow:
        state = self._state
        is_draft = row.seq in self._drafts
        classes = css_of(
            css,
            row.seq == state.query.msg and "is-sel",
            bool(state.at) and row.entered_step == state.at and "is-new",
            is_draft and "is-draft",
            row.seq in self._related and "is-rel",
        )
        return MemoryRow(
            seq=row.seq,
            glyph=glyph(row.type, row.has_calls),
            css=classes,
            text=state.texts[row.seq],
            is_code=is_code(row.type, row.has_calls),
            amount=row.tokens,
            past=past,
            this=self._cost(row),
            is_draft=is_draft,
        )

    def _ghost(self, evicted: EvictedMessage) -> MemoryRow:
        return MemoryRow(
            seq=evicted.seq,
            glyph=glyph(evicted.type, evicted.has_calls),
            css=css_of(evicted.seq == self._state.query.msg and "is-sel"),
            text=self._state.texts[evicted.seq],
            is_code=is_code(evicted.type, evicted.has_calls),
            amount=-evicted.tokens,
            past=0,
            this=0,
            note=_ghost_note(evicted),
        )


def _ghost_note(evicted: EvictedMessage) -> str:
    if evicted.reason is Reason.CAPACITY:
        return "oldest"
    if evicted.reason is Reason.ORPHANED:
        return f"with #{evicted.because_seq}"
    return short_reason(evicted.reason)


def _elsewhere(rows: Sequence[WindowPlace], seq: int) -> Elsewhere:
    return Elsewhere(len(rows), sum(row.tokens for row in rows), seq)
