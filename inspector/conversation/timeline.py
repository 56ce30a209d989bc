"""The tape as SVG and cells: every step a column, drawn on the server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from chatmemory.explain import role
from chatmemory.queries import TapeCell
from inspector.templatetags.inspector import glyph

TICK_EVERY = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000)
TICKS_MOST = 14
WORD_CELLS = 5


@dataclass(frozen=True)
class Cell:
    """One column: `css` holds its states, `words` what a pointer or a screen reader is told."""

    step: int
    seq: int | None
    glyph: str
    css: str
    words: str
    is_head: bool
    is_draft: bool


@dataclass(frozen=True)
class DraftColumn:
    """A draft in the chart: its column, and the heights of what would be said and remembered."""

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
class Tape:
    """What the template draws. Paths live in a box of `columns` by 100, y growing downwards."""

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


def draw(
    samples: Sequence[TapeCell],
    *,
    at: int,
    limit: int | None,
    in_window: set[int],
    unit: str,
    selected: int | None = None,
    hits: Collection[int] = (),
    drafts: Sequence[TapeCell] = (),
    leaving: Collection[int] = (),
) -> Tape:
    """The tape with its playhead at step `at`; `in_window` are the seqs in memory then, `hits`
    those that were searched for.

    `drafts` take the columns behind the playhead, and `leaving` would leave because of them.
    """
    playhead = sum(cell.step <= at for cell in samples)
    samples = [*samples[:playhead], *drafts, *samples[playhead + len(drafts) :]]
    top = _round_up(max([limit or 0, *(cell.history for cell in samples), 1]))
    said = [_height(cell.history, top) for cell in samples]
    memory = [_height(cell.load, top) for cell in samples]
    columns = range(playhead, playhead + len(drafts))
    head = playhead + len(drafts) - 1
    look = _Look(samples, at, head, columns, in_window, unit, selected, hits, leaving)
    cells = tuple(look.cell(i) for i in range(len(samples)))
    return Tape(
        cells=cells,
        ticks=tuple(_named(cells, list(_ticks(samples, head)))),
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
class _Look:
    """How the columns look; `head` is the playhead's, `drafts` those that are only tried."""

    samples: Sequence[TapeCell]
    at: int
    head: int
    drafts: range
    in_window: set[int]
    unit: str
    selected: int | None
    hits: Collection[int]
    leaving: Collection[int]

    def cell(self, i: int) -> Cell:
        cell, state = self.samples[i], self.state(i)
        states = [state]
        if state == "is-in":
            states += ["is-first"] if i == 0 or self.state(i - 1) != "is-in" else []
            last = i == len(self.samples) - 1 or self.state(i + 1) != "is-in"
            states += ["is-last"] if last else []
        states += ["is-draft"] if i in self.drafts else []
        states += ["is-leaving"] if cell.left_step == self.at or cell.seq in self.leaving else []
        states += ["is-sel"] if self.selected is not None and cell.seq == self.selected else []
        states += ["is-hit"] if cell.seq in self.hits else []
        states += [_pairing(self.samples, i)]
        return Cell(
            step=cell.step,
            seq=cell.seq,
            glyph=glyph(cell.type, cell.has_calls) if cell.type else "",
            css=" ".join(filter(None, states)),
            words=self.words(i, state),
            is_head=i == self.head,
            is_draft=i in self.drafts,
        )

    def state(self, i: int) -> str:
        cell = self.samples[i]
        if i not in self.drafts and cell.step > self.at:
            return "is-later"
        return "is-in" if cell.seq in self.in_window else "is-out"

    def words(self, i: int, state: str) -> str:
        cell = self.samples[i]
        if cell.type is None:
            return f"Step {cell.step:,}"
        life = {
            "is-in": "in memory",
            "is-later": "not said yet",
            "is-out": f"forgotten at step {cell.left_step:,}" if cell.left_step else "left",
        }[state]
        weight = f" · {cell.tokens:,} tok" if self.unit == "tok" else ""
        name = "Draft," if i in self.drafts else f"#{cell.seq:,}"
        life = "not said yet" if i in self.drafts else life
        return f"{name} {role(cell.type, cell.has_calls)}{weight} · {life}"


def _pairing(samples: Sequence[TapeCell], i: int) -> str:
    def result(position: int) -> bool:
        known = 0 <= position < len(samples) and samples[position].type
        return known == "TOOL_EXECUTION_RESULT"

    if samples[i].has_calls and result(i + 1):
        return "p-start"
    if result(i):
        return "p-mid" if result(i + 1) else "p-end"
    return ""


def _ticks(samples: Sequence[TapeCell], head: int) -> Iterable[tuple[str, str]]:
    """(text, css) per column; round numbers keep clear of the playhead."""
    last = samples[-1].step if samples else 0
    every = next((n for n in TICK_EVERY if last / n <= TICKS_MOST), TICK_EVERY[-1])
    clear = max(2, len(samples) // 24)
    for i, cell in enumerate(samples):
        if i == len(samples) - 1:
            yield (f"{cell.step:,}", "end") if i - head > clear else ("", "")
        elif cell.step % every == 0 and abs(i - head) > clear and len(samples) - i > clear:
            yield f"{cell.step:,}", ""
        else:
            yield "", ""


def _named(cells: Sequence[Cell], ticks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Words in place of numbers: pinned, forgotten, window, not said yet; numbers keep clear."""
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


def spark(loads: Sequence[int], limit: int | None) -> tuple[str, str, float | None]:
    """Area, line and limit of a sparkline in a box of 40 by 20, aligned to the right."""
    top = max([limit or 0, *loads, 1]) * 1.1
    heights = [20 - 20 * load / top for load in loads]
    start = 40 - len(heights)
    points = "".join(f"V{y:.1f}H{start + i + 1}" for i, y in enumerate(heights))
    if not heights:
        return "", "", None
    line = f"M{start} {heights[0]:.1f}{points}"
    return f"M{start} 20{points}V20Z", line, round(20 - 20 * limit / top, 1) if limit else None


def _height(number: int, top: int) -> float:
    return round(100 - 100 * number / top, 2)


def _area(heights: Sequence[float]) -> str:
    return f"M0 100{_steps(heights)}V100Z" if heights else ""


def _line(heights: Sequence[float]) -> str:
    return f"M0 100{_steps(heights)}" if heights else ""


def _steps(heights: Sequence[float]) -> str:
    return "".join(f"V{y:.2f}H{i}" for i, y in enumerate(heights, 1))


def _round_up(number: int) -> int:
    """To one or two leading digits, so that the axis ends on a round number."""
    scale: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // scale) * scale
