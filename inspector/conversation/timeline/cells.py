"""The cells: one for each step around the playhead, with the state of what was said at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.explain import counted, happened
from chatmemory.queries import Arrival, ConversationState, StepSample
from inspector.conversation.measures import TOKENS, Measure
from inspector.conversation.rows import LOOKS, pairings
from inspector.conversation.timeline.labels import strip_width

# In pixels: a digit of a mark, and what a cell leaves free beside it.
DIGIT, INSET = 6.5, 3.0


@dataclass(frozen=True)
class Cell:
    """A cell: `css` has the classes of its states, `words` the text of its tooltip.

    `mark` is the number of its messages, if there are several; the words have it in full. The
    playhead stands at the one that `is_head`.
    """

    step: int
    seq: int | None
    glyph: str
    css: str
    words: str
    mark: str = ""
    href: str = ""
    is_draft: bool = False
    is_head: bool = False


@dataclass(frozen=True)
class CellLinks:
    """The addresses of cells, with the rest of the page's query.

    There are many, so those of steps are short: relative to the page at `url`, unless that was
    posted to another one.
    """

    url: str
    rest: str
    is_live: bool
    is_posted: bool

    def href(self, at: int, column: StepSample) -> str:
        """Return the address of a cell on the page at a step."""
        arrival, is_draft = column.arrival, _is_draft(column)
        step = at if is_draft else column.step
        query = "" if self.is_live and step == at else f"&at={step}"
        if arrival:
            query += f"&draft={-arrival.seq}" if is_draft else f"&msg={arrival.seq}"
        base = self.url if is_draft or self.is_posted else ""
        return f"{base}?{(query + self.rest)[1:]}"


def cells(state: ConversationState, measure: Measure, links: CellLinks) -> tuple[Cell, ...]:
    """Return the cells of the steps that are read in full; drafts follow the playhead."""
    columns = _columns(state)
    lives = [_life(state, column) for column in columns]
    pairs = pairings([column.arrival for column in columns])
    cell_width = strip_width(len(columns)) / max(1, len(columns))
    around = ["", *lives, ""]
    head = max(state.at + len(state.drafts) - columns[0].step, 0) if columns else 0
    drawn = []
    for i, (column, life, paired) in enumerate(zip(columns, lives, pairs, strict=True)):
        seqs, arrival, is_in = column.seqs, column.arrival, life == "is-in"
        count, is_draft = len(seqs), _is_draft(column)
        glyph = LOOKS[arrival.type, arrival.has_calls].glyph if arrival else ""
        classes = (
            life,
            f"r-{glyph}" if glyph else "",
            "" if count else "is-tick",
            "is-many" if count > 1 else "",
            "is-first" if is_in and around[i] != life else "",
            "is-last" if is_in and around[i + 2] != life else "",
            "is-draft" if is_draft else "",
            "" if state.evicted.keys().isdisjoint(seqs) else "is-leaving",
            "is-sel" if state.query.msg in seqs else "",
            "" if state.found.isdisjoint(seqs) else "is-hit",
            paired,
        )
        cell = Cell(
            step=column.step,
            seq=arrival.seq if arrival else None,
            glyph=glyph,
            css=" ".join(filter(None, classes)),
            words=_words(state, column, life, shows_tokens=measure.unit == TOKENS.unit),
            mark=_mark(count, cell_width - INSET) if count > 1 else "",
            href=links.href(state.at, column),
            is_draft=is_draft,
            is_head=i == head,
        )
        drawn.append(cell)
    return tuple(drawn)


def _columns(state: ConversationState) -> Sequence[StepSample]:
    """Return the steps of the part, in which drafts take the place of those after the playhead."""
    part, drafts = state.samples.part, state.drafts
    if not drafts:
        return part
    head = sum(sample.step <= state.at for sample in part)
    simulated = [
        StepSample(
            step=state.at + n,
            kind="add",
            policy=state.window.policy,
            after=state.window.totals,
            said=state.window.totals,
            seqs=range(row.seq, row.seq + 1),
            arrival=Arrival(row.seq, row.type, row.has_calls, row.tokens),
        )
        for n, row in enumerate(drafts, 1)
    ]
    return [*part[:head], *simulated, *part[head + len(drafts) :]]


def _is_draft(column: StepSample) -> bool:
    return bool(column.seqs) and column.seqs[0] < 0


def _life(state: ConversationState, column: StepSample) -> str:
    """Return is-in, is-out or is-later for the messages of a step."""
    if column.step > state.at and not _is_draft(column):
        return "is-later"
    return "is-out" if state.in_window.isdisjoint(column.seqs) else "is-in"


def _mark(count: int, width: float) -> str:
    """Return the number of several messages, or a plus if there is no room for it."""
    return str(count) if DIGIT * len(str(count)) <= width else "+"


def _words(state: ConversationState, column: StepSample, life: str, shows_tokens: bool) -> str:
    seqs, arrival, is_later = column.seqs, column.arrival, life == "is-later"
    if not seqs:
        return f"Step {column.step:,}: {happened(column.kind)}"
    if arrival is None:
        kept = len(state.in_window.intersection(seqs))
        told = "not said yet" if is_later else f"{kept:,} in memory"
        return f"#{seqs[0]:,} to #{seqs[-1]:,}: {counted(len(seqs), 'message')}, {told}"
    is_draft = _is_draft(column)
    name = "Draft" if is_draft else f"#{arrival.seq:,}"
    weight = f", {arrival.tokens:,} tok" if shows_tokens and not is_later else ""
    told = "not said yet" if is_draft or is_later else "in memory"
    if life == "is-out" and not is_draft:
        told = f"forgotten at step {arrival.left_step:,}" if arrival.left_step else "forgotten"
    return f"{name} {LOOKS[arrival.type, arrival.has_calls].role}{weight}, {told}"
