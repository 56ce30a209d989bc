"""The timeline: a chart and a row of cells with one column per step, drawn on the server.

Styles and templates call it the tape. Its data are those of `queries.step_samples`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatmemory.explain import role
from chatmemory.queries import ConversationState, StepSample
from inspector.conversation.glyphs import glyph
from inspector.conversation.measures import limit_of, short_unit
from inspector.conversation.rows import css_of, pairing
from inspector.conversation.simulation import draft_samples

TICK_EVERY = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000)
TICKS_MAX = 14
WORD_CELLS = 5


@dataclass(frozen=True)
class Cell:
    """A column: `css` has the classes of its states, `words` the text of its tooltip."""

    step: int
    seq: int | None
    glyph: str
    css: str
    words: str
    is_head: bool
    is_draft: bool


@dataclass(frozen=True)
class DraftColumn:
    """A draft in the chart: its column, and the heights of history and memory with it."""

    x: int
    said_y: float
    memory_y: float

    @property
    def said(self) -> float:
        return round(100 - self.said_y, 2)

    @property
    def memory(self) -> float:
        return round(100 - self.memory_y, 2)


@dataclass(frozen=True)
class Timeline:
    """The data of the template. Paths are in a box of `columns` by 100, with y downwards."""

    cells: tuple[Cell, ...]
    ticks: tuple[tuple[str, str], ...]
    columns: int
    playhead: int
    said_path: str
    said_line: str
    memory_path: str
    limit_y: float | None
    top: int
    drafts: tuple[DraftColumn, ...] = ()


def draw(state: ConversationState) -> Timeline:
    """Return the timeline with its playhead at the state's step; drafts follow the playhead."""
    drafts = draft_samples(state)
    playhead = sum(sample.step <= state.at for sample in state.samples)
    samples = [
        *state.samples[:playhead],
        *drafts,
        *state.samples[playhead + len(drafts) :],
    ]
    limit = limit_of(state)
    top = _round_up(max([limit or 0, *(sample.history for sample in samples), 1]))
    said = [_height(sample.history, top) for sample in samples]
    memory = [_height(sample.load, top) for sample in samples]
    columns = range(playhead, playhead + len(drafts))
    head = playhead + len(drafts) - 1
    builder = _CellBuilder(state, samples, head, columns, short_unit(state.window.policy) == "tok")
    cells = tuple(builder.cell(i) for i in range(len(samples)))
    return Timeline(
        cells=cells,
        ticks=tuple(_with_names(cells, list(_ticks(samples, head)))),
        columns=len(samples),
        playhead=playhead,
        said_path=_area(said),
        said_line=_line(said),
        memory_path=_area(memory),
        limit_y=_height(limit, top) if limit and limit <= top else None,
        top=top,
        drafts=tuple(DraftColumn(i, said[i], memory[i]) for i in columns),
    )


@dataclass(frozen=True)
class _CellBuilder:
    """A builder of cells; `head` is the column of the playhead, `drafts` those of the drafts,
    `shows_tokens` whether the limit counts tokens.
    """

    state: ConversationState
    samples: Sequence[StepSample]
    head: int
    drafts: range
    shows_tokens: bool

    def cell(self, i: int) -> Cell:
        cell, life = self.samples[i], self.life(i)
        msg = self.state.query.msg
        classes = css_of(
            life,
            life == "is-in" and (i == 0 or self.life(i - 1) != "is-in") and "is-first",
            life == "is-in" and self.is_last_in(i) and "is-last",
            i in self.drafts and "is-draft",
            self.is_leaving(cell) and "is-leaving",
            msg is not None and cell.seq == msg and "is-sel",
            cell.seq in self.state.found and "is-hit",
            pairing(self.samples, i),
        )
        return Cell(
            step=cell.step,
            seq=cell.seq,
            glyph=glyph(cell.type, cell.has_calls) if cell.type else "",
            css=classes,
            words=self.words(i, life),
            is_head=i == self.head,
            is_draft=i in self.drafts,
        )

    def life(self, i: int) -> str:
        """Return is-in, is-out or is-later for the message of a column."""
        cell = self.samples[i]
        if i not in self.drafts and cell.step > self.state.at:
            return "is-later"
        return "is-in" if cell.seq in self.state.in_window else "is-out"

    def is_last_in(self, i: int) -> bool:
        return i == len(self.samples) - 1 or self.life(i + 1) != "is-in"

    def is_leaving(self, cell: StepSample) -> bool:
        return cell.seq in self.state.evicted or cell.left_step == self.state.at

    def words(self, i: int, life: str) -> str:
        cell = self.samples[i]
        if cell.type is None:
            return f"Step {cell.step:,}"
        state = {
            "is-in": "in memory",
            "is-later": "not said yet",
            "is-out": f"forgotten at step {cell.left_step:,}" if cell.left_step else "left",
        }[life]
        weight = f" · {cell.tokens:,} tok" if self.shows_tokens else ""
        name = "Draft," if i in self.drafts else f"#{cell.seq:,}"
        state = "not said yet" if i in self.drafts else state
        return f"{name} {role(cell.type, cell.has_calls)}{weight} · {state}"


def _ticks(samples: Sequence[StepSample], head: int) -> Iterable[tuple[str, str]]:
    """Yield (text, css) per column: round numbers, but none near the playhead."""
    last = samples[-1].step if samples else 0
    every = next((n for n in TICK_EVERY if last / n <= TICKS_MAX), TICK_EVERY[-1])
    clear = max(2, len(samples) // 24)
    for i, cell in enumerate(samples):
        if i == len(samples) - 1:
            yield (f"{cell.step:,}", "end") if i - head > clear else ("", "")
        elif cell.step % every == 0 and abs(i - head) > clear and len(samples) - i > clear:
            yield f"{cell.step:,}", ""
        else:
            yield "", ""


def _with_names(cells: Sequence[Cell], ticks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the ticks with the names pinned, forgotten, window and not said yet.

    Numbers near a name are removed.
    """
    states = [cell.css.split()[0] for cell in cells]
    head = next((i for i, cell in enumerate(cells) if cell.is_head), None)
    words: dict[int, tuple[str, str]] = {}
    if states and states[0] == "is-in" and cells[0].glyph == "system":
        words[0] = "pinned", "start"
    if head is not None and states[head] == "is-in" and head > WORD_CELLS:
        words[head - 1] = "window", "win"
    out = [i for i, state in enumerate(states) if state == "is-out" and cells[i].glyph]
    if out and (head is None or head - out[-1] > WORD_CELLS) and out[-1] > WORD_CELLS:
        words[out[-1]] = "forgotten", "lost"
    if head is not None and len(cells) - head > 2 * WORD_CELLS and not cells[head].is_draft:
        words[head + 1] = "not said yet", "later"
    for i, word in words.items():
        for near in range(max(0, i - WORD_CELLS), min(len(ticks), i + WORD_CELLS + 1)):
            ticks[near] = "", ""
        ticks[i] = word
    for i, word in words.items():
        ticks[i] = word
    return ticks


def _height(number: int, top: int) -> float:
    return round(100 - 100 * number / top, 2)


def _area(heights: Sequence[float]) -> str:
    return f"M0 100{_steps(heights)}V100Z" if heights else ""


def _line(heights: Sequence[float]) -> str:
    return f"M0 100{_steps(heights)}" if heights else ""


def _steps(heights: Sequence[float]) -> str:
    return "".join(f"V{y:.2f}H{i}" for i, y in enumerate(heights, 1))


def _round_up(number: int) -> int:
    """Rounds up to one or two significant digits, so that the axis ends at a round number."""
    scale: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // scale) * scale
