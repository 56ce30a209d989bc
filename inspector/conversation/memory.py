"""The memory pane: the messages in memory, and the messages that the shown step evicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar

from chatmemory import Reason, can_decide
from chatmemory.explain import wording
from chatmemory.explain.causes import note_of, short_reason
from chatmemory.explain.interruptions import state_of, unseen
from chatmemory.explain.wording import in_unit
from chatmemory.messages.texts import named
from chatmemory.reading.windows import MessageView
from chatmemory.services import ChangeResult
from chatmemory.windows.eviction import Eviction
from inspector.conversation.forecasts import beyond_limit, what_is_hidden, why_nothing_fits
from inspector.conversation.history import MessageLine, related
from inspector.conversation.index import IndexRow
from inspector.conversation.looks import CssClass, pairings
from inspector.conversation.measures import Measure, unit_of
from inspector.conversation.state import WINDOW_SIZE
from inspector.shell.state import ConversationState

EVICTED_MAX = 5
BAR_HEIGHT = 3


class MemoryPaneRow(MessageLine):
    """A row of the memory pane. `drawn` lists the fields that its template gets.

    - `soon` is a label such as "leaves next" if the message is among the first to leave or to be
      cleared.
    - `list` is "pinned" for the rows in `MemoryPane.top`, else "kept".
    - `bar` has three sizes for the bar beside a row in `MemoryPane.top`: the full width, the size
      of everything above the row, and the size of the message. None for the other rows, whose bars
      are in `LoadBars`.
    - `past` and `this` are the last two of these sizes, for every row. `this` is 0 for an evicted
      message and for an interrupted tool call.
    """

    drawn: ClassVar = (
        *("seq", "css", "glyph", "param", "number", "name", "is_code", "note", "soon", "amount"),
        *("list", "bar"),
    )

    def __init__(
        self,
        state: ConversationState,
        message: MessageView | Eviction,
        *classes: CssClass,
        amount: int,
        note: str,
        past: int = 0,
        this: int = 0,
        soon: str = "",
        is_over: bool = False,
        is_unseen: bool = False,
        width: int = 0,
    ) -> None:
        super().__init__(state, message, *classes)
        self.text = state.contents.cleared.get(message.seq, self.text)
        self.amount, self.note, self.past, self.this = amount, note, past, this
        self.soon, self.is_over, self.is_unseen = soon, is_over, is_unseen
        self.list = "pinned" if width else "kept"
        self.bar = (width, past, this) if width else None


class Elsewhere:
    """The messages in memory before, or after, the messages that the pane shows.

    - `count` is their number, and `tokens` their size in tokens.
    - `seq` is the number of the message nearest to the shown messages. A link leads to this
      message.
    """

    def __init__(self, rows: Sequence[MessageView], seq: int) -> None:
        self.count, self.tokens, self.seq = len(rows), sum(row.tokens for row in rows), seq


class JustEvicted:
    """The messages that one change evicted from memory.

    - `rows` has a row for each of the first five evicted messages, and `more` is the number of the
      other evicted messages.
    - `load` is the size of all evicted messages in the unit of the change's policy. It is 0 or
      negative, such as -4.
    - `amount` is the size of all evicted messages in tokens, also 0 or negative.
    """

    def __init__(self, state: ConversationState, change: ChangeResult) -> None:
        self._state, self._change = state, change
        self.rows = [self._row(each) for each in change.evicted[:EVICTED_MAX]]
        self.more = len(change.evicted) - len(self.rows)
        self.load = -Measure.of(change.policy).cost_of_all(change.evicted)
        self.amount = -change.lost

    @property
    def load_words(self) -> str:
        """The size of the evicted messages with its unit: `−1 turn`, `−4 msg`."""
        unit = unit_of(self.load, Measure.of(self._change.policy).unit)
        return f"{wording.amount(self.load)} {unit}"

    @property
    def when(self) -> str:
        if self._state.is_simulated:
            return "if this is added" if self._state.simulation.drafts else "at the next add"
        if len(self._change.arrived) == 1:
            return f"when #{self._change.arrived[0].seq} arrived"
        return f"at step {self._state.step.n:,}"

    def _row(self, evicted: Eviction) -> MemoryPaneRow:
        if evicted.reason is Reason.SUMMARIZED:
            note = short_reason(evicted.reason)
        else:
            note = note_of(self._change, evicted)
        return MemoryPaneRow(self._state, evicted, amount=-evicted.tokens, note=note)


class LoadBars:
    """The bars beside the rows of memory, as SVG paths. Together they rise like a staircase.

    - `track` has a bar of the full width for each row. The full width is the limit, or, without a
      limit, the size of memory.
    - `past` has a bar for the size of everything above the row.
    - `this` has a bar for the size of the row's message, unless memory up to this message exceeds
      the limit.
    - `over` has a bar for the size of the row's message, if memory up to this message exceeds the
      limit.

    `width` and `height` are the size of the SVG's view box. `width` is in the unit of the limit,
    and `height` is three units for each row.
    """

    def __init__(self, rows: Sequence[MemoryPaneRow], width: int) -> None:
        bars = list(enumerate(rows))
        self.width, self.height = width, BAR_HEIGHT * max(1, len(bars))
        self.track = _path((i, 0, width) for i, _ in bars)
        self.past = _path((i, 0, row.past) for i, row in bars)
        self.this = _path((i, row.past, row.this) for i, row in bars if not row.is_over)
        self.over = _path((i, row.past, row.this) for i, row in bars if row.is_over)


# Long: presents one pane; each property is what a part of the pane shows.
class MemoryPane:
    """Presents the memory pane.

    - `next_to_clear` are the numbers of the tool results to be cleared before a message leaves.
    - `next_to_leave` are the numbers of the messages that leave first. Empty if `next_to_clear` is
      not empty.
    - `is_full` is True if even the shortest new message would exceed the limit.
    """

    def __init__(self, state: ConversationState, measure: Measure) -> None:
        self._state = state
        self._measure = measure
        self._window = state.window
        self._load = measure.load(state.window.totals)
        self._related = related(state)
        awaits_result = state.waiting_call is not None
        self.next_to_clear = state.window.next_to_clear(state.contents.cleared, awaits_result)
        self.next_to_leave = () if self.next_to_clear else state.window.next_to_leave
        self._next = frozenset(self.next_to_clear or self.next_to_leave)
        self.is_full = state.window.is_full
        self.bar_width = measure.limit or max(1, self._load)

    @property
    def top(self) -> list[MemoryPaneRow]:
        """The rows at the top of the pane: the leading system message, and the messages before the
        index of exact terms, if memory has an index.
        """
        first = self._window.system_at_head
        places = [*([first] if first else []), *self._above_index]
        return self._rows(places, self._measure.overhead, is_on_top=True)

    @cached_property
    def _above_index(self) -> list[MessageView]:
        """The rows between the system message and the index; empty without an index."""
        rows = self._window.rows[self._state.shown.part]
        place = next((n for n, row in enumerate(rows) if self._is_index(row)), 0)
        return list(rows[:place])

    @cached_property
    def messages(self) -> list[MemoryPaneRow]:
        """The rows below those of `top`, including interrupted tool calls. A long window is shown
        in part.
        """
        rows, part, on_top = self._window.rows, self._state.shown.part, len(self._above_index)
        above = [*rows[: part.start + on_top], *filter(self._is_index, rows[part])]
        past = self._measure.overhead + self._measure.cost_of_all(above)
        shown = self._rows(self._without_index(rows[part])[on_top:], past)
        return self._with_unseen(shown, past) if self._window.interrupted else shown

    @cached_property
    def index(self) -> IndexRow | None:
        """The row of the index of exact terms; None without an index."""
        shown = self._state.contents.index
        place = next(filter(self._is_index, self._window.rows), None)
        return IndexRow(self._state, shown.index, place) if shown and place else None

    @property
    def has_nothing_exact(self) -> bool:
        """Whether the policy asks for an index and messages have left memory, but memory has no
        index. For example, none of these messages had an exact term.

        False in a simulation.
        """
        policy, state = self._window.policy, self._state
        if self.index or not can_decide(policy) or not policy.indexed_terms or state.is_simulated:
            return False
        said = state.step.detail.row.said_count if state.step.detail else 0
        return said > sum(row.seq not in state.contents.injected for row in self._window.in_order)

    def _is_index(self, row: MessageView) -> bool:
        return self._state.contents.index is not None and row.seq == self._state.contents.index.seq

    def _without_index(self, rows: Iterable[MessageView]) -> list[MessageView]:
        return [row for row in rows if not self._is_index(row)]

    def _with_unseen(self, shown: list[MemoryPaneRow], past: int) -> list[MemoryPaneRow]:
        """Return the rows of the pane together with rows for interrupted tool calls, in window
        order.
        """
        window, part = self._window, self._state.shown.part
        places = {row.seq: place for place, row in enumerate(window.in_order)}
        first = places[window.rows[part.start - 1].seq] if part.start else -1
        last = places[window.rows[part.stop].seq] if part.stop < len(window.rows) else len(places)
        unseen = [each for each in window.in_order if each.seq in window.interrupted_seqs]
        between = [each for each in unseen if first < places[each.seq] < last][-WINDOW_SIZE:]
        found = [*shown, *map(self._unseen_row, between)]
        found.sort(key=lambda row: places[row.seq])
        for row in found:
            row.past, past = (past, past) if row.is_unseen else (row.past, row.past + row.this)
        return found

    def _unseen_row(self, place: MessageView) -> MemoryPaneRow:
        call = self._window.interrupted_call_of(place.seq)
        assert call is not None
        is_call = place.seq == call.call.seq
        note = state_of(call) if is_call else f"result of {named(call.call.seq)}"
        return MemoryPaneRow(
            self._state,
            place,
            "is-unseen",
            place.seq in self._related and "is-rel",
            amount=place.tokens,
            note=note,
            is_unseen=True,
        )

    @property
    def load_bars(self) -> LoadBars:
        """The bars beside the rows of `messages`."""
        return LoadBars(self.messages, self.bar_width)

    @property
    def earlier(self) -> Elsewhere | None:
        first = 1 if self._window.system_at_head else 0
        rows = self._without_index(self._window.rows[first : self._state.shown.part.start])
        return Elsewhere(rows, rows[-1].seq) if rows else None

    @property
    def later(self) -> Elsewhere | None:
        rows = self._window.rows[self._state.shown.part.stop :]
        return Elsewhere(rows, rows[0].seq) if rows else None

    @property
    def next_others(self) -> str:
        """The end of the sentence about the first message to leave, such as ` with #27, 88 tokens`.

        It names the other messages that leave together with the first message, and then the size of
        all leaving messages. The size is left out if only one message leaves and the policy's unit
        is messages.
        """
        policy, others = self._window.policy, self.next_to_leave[1:]
        words = f" with {wording.seqs(others)}" if others else ""
        if not can_decide(policy) or (not others and policy.unit == "messages"):
            return words
        leaving = (row for row in self._window.rows if row.seq in self._next)
        return f"{words}, {in_unit(self._measure.cost_of_all(leaving), policy)}"

    @property
    def next_words(self) -> str:
        """The label of the rows that are cleared or evicted first, such as "leaves next" or "first
        to be cleared".
        """
        if self.next_to_clear:
            return "cleared next" if self.is_full else "first to be cleared"
        return "leaves next" if self.is_full else "first to leave"

    @property
    def clearing_words(self) -> str:
        """A sentence that names the tool results to be cleared before any message leaves. "" if no
        tool result will be cleared.
        """
        if not self.next_to_clear:
            return ""
        is_one = len(self.next_to_clear) == 1
        cleared = "is cleared" if is_one else "are cleared"
        when = "at the next add" if self.is_full else "when memory is full"
        results = f"{'Result' if is_one else 'Results'} {wording.seqs(self.next_to_clear)}"
        return f"{results} {cleared} {when}, before a message leaves."

    @property
    def hidden_words(self) -> str:
        """How many messages a lowered limit hides, and what will happen to them: `3 messages over
        the limit will leave at the next add`.
        """
        return what_is_hidden(self._window)

    @property
    def refusal(self) -> str:
        """A sentence on why no message can be added. "" if a message can be added, or if
        `hidden_words` already gives the reason.
        """
        is_said = bool(self._window.over_limit or self.next_to_leave)
        return "" if is_said else why_nothing_fits(self._window)

    @property
    def beyond(self) -> str:
        """The sentences below the pane's rows: how many messages a lowered limit hides, and what
        will happen to these messages. The page shows the sentences only if the limit hides
        messages.
        """
        return beyond_limit(self._window)

    @property
    def unseen(self) -> str:
        """Sentences about interrupted tool calls, which the model does not see; "" if there are
        none.
        """
        return " ".join(unseen(self._window))

    @property
    def room(self) -> int | None:
        """The unused part of the limit in the policy's unit, at least 0; None without a limit."""
        limit = self._measure.limit
        return None if limit is None else max(0, limit - self._load)

    @property
    def room_words(self) -> str:
        """The unused part of the limit with its unit; "" without a limit."""
        room = self.room
        return "" if room is None else f"{room:,} {unit_of(room, self._measure.unit)}"

    @property
    def just_evicted(self) -> JustEvicted | None:
        """The messages that the shown step evicted, with sizes in the unit of the policy at that
        step. None if the step evicted no message, or only replaced tool results or the index.
        """
        change = self._state.change
        is_leaving = change and change.evicted and not change.only_replaces
        return JustEvicted(self._state, change) if change and is_leaving else None

    def _rows(
        self, places: Sequence[MessageView], past: int, is_on_top: bool = False
    ) -> list[MemoryPaneRow]:
        """Return the rows of these messages. `past` is the size of all rows above them."""
        state, limit, width = self._state, self._measure.limit, self.bar_width
        next_css = "is-next is-due" if self.is_full else "is-next"
        rows = []
        for place, paired in zip(places, pairings(places), strict=True):
            seq = place.seq
            load = self._measure.weigh(place)
            is_next = seq in self._next
            is_over = limit is not None and past + load > limit
            row = MemoryPaneRow(
                state,
                place,
                is_on_top and "led--sys",
                paired,
                state.step.n > 0 and place.entered_step == state.step.n and "is-new",
                seq < 0 and "is-draft",
                place.pinned and "is-pinned",
                is_next and next_css,
                is_over and "is-over",
                seq in self._related and "is-rel",
                amount=place.tokens,
                note=self._note(place),
                past=min(past, width),
                this=max(0, min(load, width - past)),
                soon=self.next_words if is_next else "",
                is_over=is_over,
                width=width if is_on_top else 0,
            )
            rows.append(row)
            past += load
        return rows

    def _note(self, place: MessageView) -> str:
        if covered := self._state.contents.summaries.get(place.seq):
            size = wording.counted(covered.number, "message")
            return f"replaces {size} of {covered.tokens:,} tok"
        notes = {
            "pinned": place.pinned,
            "not in history": place.seq in self._state.contents.injected,
        }
        return ", ".join(note for note, is_so in notes.items() if is_so)


def _path(bars: Iterable[tuple[int, int, int]]) -> str:
    """Return bars of (row, start, length) as an SVG path. A bar fills the middle third of its row's
    height.
    """
    drawn = (
        f"M{start} {BAR_HEIGHT * row + 1}h{length}v1h-{length}z"
        for row, start, length in bars
        if length
    )
    return "".join(drawn)
