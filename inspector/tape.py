"""The tape as SVG and cells: every step a column, drawn on the server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from chatmemory.explanations import role
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


def draw(
    samples: Sequence[TapeCell],
    *,
    at: int,
    limit: int | None,
    in_window: set[int],
    unit: str,
    selected: int | None = None,
    hits: Collection[int] = (),
) -> Tape:
    """The tape with its playhead at step `at`; `in_window` are the seqs in memory then, `hits`
    those that were searched for.
    """
    top = _round_up(max([limit or 0, *(cell.history for cell in samples), 1]))
    said = [100 - 100 * cell.history / top for cell in samples]
    memory = [100 - 100 * cell.load / top for cell in samples]
    cells = _cells(samples, at, in_window, unit, selected, hits)
    return Tape(
        cells=cells,
        ticks=tuple(_named(cells, list(_ticks(samples, at)))),
        columns=len(samples),
        playhead=sum(cell.step <= at for cell in samples),
        said_path=_area(said),
        said_line=_line(said),
        memory_path=_area(memory),
        limit_y=round(100 - 100 * limit / top, 2) if limit and limit <= top else None,
        top=top,
    )


def _cells(
    samples: Sequence[TapeCell],
    at: int,
    in_window: set[int],
    unit: str,
    selected: int | None,
    hits: Collection[int],
) -> tuple[Cell, ...]:
    inside = [cell.seq in in_window and cell.step <= at for cell in samples]
    cells = []
    for i, cell in enumerate(samples):
        states = [_state(cell, at, inside[i])]
        if inside[i]:
            states += ["is-first"] if i == 0 or not inside[i - 1] else []
            states += ["is-last"] if i == len(samples) - 1 or not inside[i + 1] else []
        states += ["is-leaving"] if cell.left_step == at else []
        states += ["is-sel"] if selected is not None and cell.seq == selected else []
        states += ["is-hit"] if cell.seq in hits else []
        states += [_pairing(samples, i)]
        cells.append(
            Cell(
                step=cell.step,
                seq=cell.seq,
                glyph=glyph(cell.type, cell.has_calls) if cell.type else "",
                css=" ".join(filter(None, states)),
                words=_words(cell, states[0], unit),
                is_head=cell.step == at,
            )
        )
    return tuple(cells)


def _state(cell: TapeCell, at: int, inside: bool) -> str:
    if cell.step > at:
        return "is-later"
    return "is-in" if inside else "is-out"


def _pairing(samples: Sequence[TapeCell], i: int) -> str:
    def result(position: int) -> bool:
        known = 0 <= position < len(samples) and samples[position].type
        return known == "TOOL_EXECUTION_RESULT"

    if samples[i].has_calls and result(i + 1):
        return "p-start"
    if result(i):
        return "p-mid" if result(i + 1) else "p-end"
    return ""


def _words(cell: TapeCell, state: str, unit: str) -> str:
    if cell.type is None:
        return f"Step {cell.step:,}"
    life = {
        "is-in": "in memory",
        "is-later": "not said yet",
        "is-out": f"forgotten at step {cell.left_step:,}" if cell.left_step else "left",
    }[state]
    weight = f" · {cell.tokens:,} tok" if unit == "tok" else ""
    return f"#{cell.seq:,} {role(cell.type, cell.has_calls)}{weight} · {life}"


def _ticks(samples: Sequence[TapeCell], at: int) -> Iterable[tuple[str, str]]:
    """(text, css) per column; round numbers keep clear of the playhead."""
    last = samples[-1].step if samples else 0
    every = next((n for n in TICK_EVERY if last / n <= TICKS_MOST), TICK_EVERY[-1])
    head = sum(cell.step <= at for cell in samples) - 1
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
    if head is not None and len(cells) - head > 2 * WORD_CELLS:
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
