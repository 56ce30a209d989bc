"""The memory pane: the messages that the model sees, and those that just left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from chatmemory import Reason, can_decide, explain
from chatmemory.explain import oldest, reason_of
from chatmemory.queries import ConversationState, WindowPlace
from chatmemory.services import ChangeResult, EvictedMessage
from inspector.conversation.falls import Falls, falls
from inspector.conversation.glyphs import glyph
from inspector.conversation.history import related
from inspector.conversation.measures import cost, cost_of_all, limit_of, load_in, overhead
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
        self._related = related(state)
        self.next_to_leave = state.window.next_to_leave
        self._next = frozenset(state.window.next_to_leave)
        self.is_full = state.window.is_full

    @cached_property
    def head(self) -> tuple[WindowPlace, ...]:
        """The rows that stay at the top: a system message that is the first, if there is one."""
        first = self._state.window.system_at_head
        return (first,) if first else ()

    @property
    def system(self) -> list[MemoryRow]:
        return self._kept(self.head, overhead(self._state.window.policy), "led--sys")

    @cached_property
    def messages(self) -> list[MemoryRow]:
        """The rows below the system message, or a part of them in a long window."""
        before = self._rows[: self._state.part.start]
        past = overhead(self._state.window.policy) + self._load(before)
        return self._kept(self._rows[self._state.part], past)

    @property
    def falls(self) -> Falls:
        return falls(self.messages, self.bar_width)

    @property
    def earlier(self) -> Elsewhere | None:
        rows = self._rows[len(self.head) : self._state.part.start]
        return _elsewhere(rows, rows[-1].seq) if rows else None

    @property
    def later(self) -> Elsewhere | None:
        rows = self._rows[self._state.part.stop :]
        return _elsewhere(rows, rows[0].seq) if rows else None

    @property
    def next_others(self) -> str:
        """What leaves with the first message, and how much all of it is: ` with #27, 88 tokens`.

        Of one message, a limit in messages says nothing.
        """
        policy, others = self._state.window.policy, self.next_to_leave[1:]
        words = f" with {explain.seqs(others)}" if others else ""
        if not can_decide(policy) or (not others and policy.unit == "messages"):
            return words
        load = cost_of_all(policy, (row for row in self._rows if row.seq in self._next))
        return f"{words}, {explain.in_unit(load, policy)}"

    @property
    def next_words(self) -> str:
        """What marks the messages that leave first: at the next add if memory is full."""
        return "leaves next" if self.is_full else "first to leave"

    @property
    def hidden_words(self) -> str:
        """How many messages a lowered limit hides, and what becomes of them."""
        return explain.what_is_hidden(self._state.window)

    @property
    def beyond(self) -> str:
        """The same in sentences, behind the messages that the model sees."""
        return explain.beyond_limit(self._state.window)

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
        rows = tuple(self._ghost(change, each) for each in change.evicted[:GHOSTS_MAX])
        load = cost_of_all(change.policy, change.evicted)
        tokens = change.lost
        return Ghosts(rows, len(change.evicted) - len(rows), -load, -tokens)

    @property
    def ghosts_when(self) -> str:
        if self._state.is_simulated:
            return "if this is added" if self._state.drafts else "at the next add"
        change = self._state.change
        if change and len(change.arrived) == 1:
            return f"when #{change.arrived[0].seq} arrived"
        return f"at step {self._state.at:,}"

    def _load(self, rows: Sequence[WindowPlace]) -> int:
        return cost_of_all(self._state.window.policy, rows)

    def _cost(self, row: WindowPlace) -> int:
        return cost(self._state.window.policy, row.tokens)

    def _is_over(self, past: int, row: WindowPlace) -> bool:
        """Whether a row ends beyond the limit."""
        policy = self._state.window.policy
        return can_decide(policy) and past + self._cost(row) > policy.limit

    def _kept(self, rows: Sequence[WindowPlace], past: int, css: str = "") -> list[MemoryRow]:
        """Return the rows of the pane; `past` is the load of the rows above them."""
        kept = []
        for i, row in enumerate(rows):
            kept.append(self._row(row, css_of(css, pairing(rows, i)), past))
            past += self._cost(row)
        return kept

    def _row(self, row: WindowPlace, css: str, past: int) -> MemoryRow:
        state = self._state
        classes = css_of(
            css,
            row.seq == state.query.msg and "is-sel",
            bool(state.at) and row.entered_step == state.at and "is-new",
            row.seq < 0 and "is-draft",
            row.pinned and "is-pinned",
            row.seq in self._next and ("is-next is-due" if self.is_full else "is-next"),
            self._is_over(past, row) and "is-over",
            row.seq in self._related and "is-rel",
        )
        return MemoryRow(
            seq=row.seq,
            glyph=glyph(row.type, row.has_calls),
            css=classes,
            text=state.texts[row.seq],
            is_code=is_code(row.type, row.has_calls),
            amount=row.tokens,
            past=min(past, self.bar_width),
            this=max(0, min(self._cost(row), self.bar_width - past)),
            soon=self.next_words if row.seq in self._next else "",
            is_over=self._is_over(past, row),
            note=", ".join(_notes(row, row.seq in state.injected)),
        )

    def _ghost(self, change: ChangeResult, evicted: EvictedMessage) -> MemoryRow:
        return MemoryRow(
            seq=evicted.seq,
            glyph=glyph(evicted.type, evicted.has_calls),
            css=css_of(evicted.seq == self._state.query.msg and "is-sel"),
            text=self._state.texts[evicted.seq],
            is_code=is_code(evicted.type, evicted.has_calls),
            amount=-evicted.tokens,
            past=0,
            this=0,
            note=_ghost_note(change, evicted),
        )


def _notes(row: WindowPlace, is_injected: bool) -> Iterator[str]:
    if row.pinned:
        yield "pinned"
    if is_injected:
        yield "never said"


def _ghost_note(change: ChangeResult, evicted: EvictedMessage) -> str:
    if evicted.reason is Reason.CAPACITY and not evicted.misfit:
        return oldest(change)
    return reason_of(evicted)


def _elsewhere(rows: Sequence[WindowPlace], seq: int) -> Elsewhere:
    return Elsewhere(len(rows), sum(row.tokens for row in rows), seq)
