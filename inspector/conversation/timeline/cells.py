"""The cells: one for each step around the playhead, with the state of what was said at it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory import MessageType
from chatmemory.explain import counted, happened, role
from chatmemory.queries import Arrival, ConversationState, StepSample
from inspector.conversation.glyphs import glyph
from inspector.conversation.measures import short_unit
from inspector.conversation.rows import css_of, pairing
from inspector.conversation.timeline.labels import strip_width

# In pixels: a digit of a mark, and what a cell leaves free beside it.
DIGIT, INSET = 6.5, 3.0


@dataclass(frozen=True)
class Cell:
    """A cell: `css` has the classes of its states, `words` the text of its tooltip.

    `mark` is the number of its messages, if there are several; the words have it in full.
    """

    step: int
    seq: int | None
    glyph: str
    css: str
    words: str
    mark: str = ""
    is_draft: bool = False


@dataclass(frozen=True)
class Column:
    """What a cell is made of: new messages, one of them known in full, at a step or as a draft."""

    step: int
    kind: str
    seqs: range
    arrival: Arrival | None = None
    is_draft: bool = False

    @property
    def type(self) -> MessageType | None:
        return self.arrival.type if self.arrival else None

    @property
    def has_calls(self) -> bool:
        return self.arrival is not None and self.arrival.has_calls


def cells(state: ConversationState) -> tuple[Cell, ...]:
    """Return the cells of the steps that are read in full; drafts follow the playhead."""
    columns = _columns(state)
    builder = _CellBuilder(state, columns)
    return tuple(builder.cell(i) for i in range(len(columns)))


def _columns(state: ConversationState) -> list[Column]:
    part = state.samples.part
    head = sum(sample.step <= state.at for sample in part)
    stored = [_stored(sample) for sample in part]
    drafts = [
        Column(
            step=state.at + n,
            kind="add",
            seqs=range(row.seq, row.seq + 1),
            arrival=Arrival(row.seq, row.type, row.has_calls, row.tokens),
            is_draft=True,
        )
        for n, row in enumerate(state.drafts, 1)
    ]
    return [*stored[:head], *drafts, *stored[head + len(drafts) :]]


def _stored(sample: StepSample) -> Column:
    return Column(sample.step, sample.kind, sample.seqs, sample.arrival)


class _CellBuilder:
    def __init__(self, state: ConversationState, columns: Sequence[Column]) -> None:
        self.state = state
        self.columns = columns
        self.shows_tokens = short_unit(state.window.policy) == "tok"
        self.in_window = sorted(state.in_window)
        self.evicted = sorted(state.evicted)
        self.found = sorted(state.found)
        self.lives = [self.life(column) for column in columns]

    def cell(self, i: int) -> Cell:
        column, life = self.columns[i], self.lives[i]
        msg = self.state.query.msg
        is_in = life == "is-in"
        arrival, count = column.arrival, len(column.seqs)
        classes = css_of(
            life,
            not count and "is-tick",
            count > 1 and "is-many",
            is_in and (i == 0 or self.lives[i - 1] != life) and "is-first",
            is_in and (i == len(self.lives) - 1 or self.lives[i + 1] != life) and "is-last",
            column.is_draft and "is-draft",
            _count(self.evicted, column.seqs) > 0 and "is-leaving",
            msg is not None and msg in column.seqs and "is-sel",
            _count(self.found, column.seqs) > 0 and "is-hit",
            pairing(self.columns, i),
        )
        return Cell(
            step=column.step,
            seq=arrival.seq if arrival else None,
            glyph=glyph(arrival.type, arrival.has_calls) if arrival else "",
            css=classes,
            words=self.words(column, life),
            mark=self.mark(count),
            is_draft=column.is_draft,
        )

    def mark(self, count: int) -> str:
        """Return the number of several messages, or a plus if there is no room for it."""
        width = strip_width(len(self.columns)) / len(self.columns) - INSET
        has_room = DIGIT * len(str(count)) <= width
        return "" if count < 2 else str(count) if has_room else "+"

    def life(self, column: Column) -> str:
        """Return is-in, is-out or is-later for the messages of a column."""
        if not column.is_draft and column.step > self.state.at:
            return "is-later"
        return "is-in" if _count(self.in_window, column.seqs) else "is-out"

    def words(self, column: Column, life: str) -> str:
        if not column.seqs:
            return f"Step {column.step:,}: {happened(column.kind)}"
        if column.arrival is None:
            return self.words_of_many(column, life)
        arrival = column.arrival
        name = "Draft" if column.is_draft else f"#{arrival.seq:,}"
        weight = f", {arrival.tokens:,} tok" if self.shows_tokens and life != "is-later" else ""
        state = "not said yet" if column.is_draft else self.state_of(arrival, life)
        return f"{name} {role(arrival.type, arrival.has_calls)}{weight}, {state}"

    def words_of_many(self, column: Column, life: str) -> str:
        kept = _count(self.in_window, column.seqs)
        first, last = column.seqs[0], column.seqs[-1]
        state = "not said yet" if life == "is-later" else f"{kept:,} in memory"
        return f"#{first:,} to #{last:,}: {counted(len(column.seqs), 'message')}, {state}"

    def state_of(self, arrival: Arrival, life: str) -> str:
        if life != "is-out":
            return "in memory" if life == "is-in" else "not said yet"
        left = arrival.left_step
        return f"forgotten at step {left:,}" if left else "forgotten"


def _count(seqs: Sequence[int], among: range) -> int:
    """Return how many of these sorted numbers are in a range."""
    if not among:
        return 0
    return bisect_right(seqs, among[-1]) - bisect_left(seqs, among[0])
