"""The strip of the timeline: a cell for each step around the shown step (the "playhead"), and
labels below the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from chatmemory.explain.wording import counted, happened
from chatmemory.reading.steps import StepSample
from chatmemory.reading.windows import MessageView
from chatmemory.windows.transitions import Change
from inspector.conversation.looks import (
    OF_INDEX,
    STYLES,
    MessageStyle,
    css_of,
    pairings,
    with_ends,
)
from inspector.conversation.measures import TOKENS, Measure
from inspector.conversation.timeline.labels import (
    GAP,
    Label,
    LabelRow,
    flag_width,
    round_numbers,
    strip_width,
    text_width,
)
from inspector.shell.state import ConversationState

UNANSWERED = "is-unseen"
# In pixels: a digit of a mark, and the free space beside it in a cell.
DIGIT, INSET = 6.5, 3.0


# Wide: a strip has a cell for each step, and its template draws one field after the other.
@dataclass
class Cell:
    """A cell of the strip, for one step. `drawn` lists the fields that its template gets.

    - `seq` is the number of the message that arrived at the step. None if no message or several
      messages arrived.
    - `glyph` names the color and shape for the kind of this message; "" if `seq` is None.
    - `css` has the CSS classes of the cell, such as `is-in` for a message in memory. `words` is the
      tooltip.
    - `mark` is the number of messages if several arrived, or "+" if the cell is too narrow for the
      number.
    - `dot` is the CSS class of a dot. Dots mark the steps at which the fact of an incident was
      said, left memory and was repeated.
    - `flag` is the text of the playhead: the number of the shown step, or "draft" at the last
      draft. "" for all other cells.
    - `is_start` is True for the first cell while step 0 is shown without drafts. This cell then has
      the playhead.
    """

    drawn: ClassVar = (*("step", "css", "words", "mark", "dot", "is_draft", "flag", "is_start"),)

    step: int
    seq: int | None
    glyph: str
    css: str
    words: str
    mark: str = ""
    href: str = ""
    dot: str = ""
    is_draft: bool = False
    flag: str = ""
    is_start: bool = False

    @property
    def is_head(self) -> bool:
        """Whether the playhead is at this cell: at the shown step, or at the last draft. At step 0,
        the playhead is at the first cell.
        """
        return bool(self.flag)


def cells(
    state: ConversationState,
    measure: Measure,
    link: Callable[[int, int | None], str],
    dots: Mapping[int, str],
) -> tuple[Cell, ...]:
    """Return the cells of the strip. `dots` maps a step to the CSS class of the dot in its cell.
    `link` returns the URL of a step and a message.

    Drafts replace the steps after the shown step.
    """
    part, drafts, at = state.step.samples.part, state.simulation.drafts, state.step.n
    first = sum(sample.step <= at for sample in part)  # of the drafts
    columns = [*part[:first], *_drafted(state), *part[first + len(drafts) :]]
    if not columns:
        return ()
    is_draft = [first <= i < first + len(drafts) for i in range(len(columns))]
    lives = [
        "is-later"
        if column.step > at and not of_draft
        else "is-out"
        if state.in_window.isdisjoint(column.seqs)
        else "is-in"
        for column, of_draft in zip(columns, is_draft, strict=True)
    ]
    pairs = pairings([column.arrival for column in columns])
    head = max(at + len(drafts) - columns[0].step, 0)
    room = strip_width(len(columns)) / len(columns) - INSET
    shows_tokens = measure.unit == TOKENS.unit
    unanswered = frozenset(state.window.interrupted_seqs)
    marked: dict[str, Set[int]] = {
        "is-leaving": state.evicted.keys(),
        "is-sel": frozenset({state.query.msg} if state.query.msg else ()),
        "is-hit": state.shown.marks.seqs,
        UNANSWERED: unanswered,
    }
    marked = {name: messages for name, messages in marked.items() if messages}
    indexed, flag = state.indexed.keys(), flag_of(state)
    drawn = []
    for i, (column, ends) in enumerate(zip(columns, with_ends(lives), strict=True)):
        seqs, arrival, count = column.seqs, column.arrival, len(column.seqs)
        glyph = _look(column).glyph if arrival else ""
        css = css_of(
            ends,
            glyph and f"r-{glyph}",
            not count and "is-tick",
            count > 1 and "is-many",
            is_draft[i] and "is-draft",
            *[name for name, messages in marked.items() if not messages.isdisjoint(seqs)],
            lives[i] == "is-out" and not indexed.isdisjoint(seqs) and "is-indexed",
            pairs[i],
        )
        cell = Cell(
            step=column.step,
            seq=arrival.seq if arrival else None,
            glyph=glyph,
            css=css,
            words=_words(state, column, lives[i], is_draft[i], shows_tokens, unanswered),
            mark=_mark(count, room) if count > 1 else "",
            href=link(column.step, arrival.seq if arrival else None),
            dot=dots.get(column.step, ""),
            is_draft=is_draft[i],
            flag=flag if i == head else "",
            is_start=i == head and not (at or drafts),
        )
        drawn.append(cell)
    return tuple(drawn)


def flag_of(state: ConversationState) -> str:
    """Return the text of the flag that marks the shown step: its number, or "draft" for simulated
    messages.
    """
    return "draft" if state.simulation.drafts else f"{state.step.n:,}"


def _drafted(state: ConversationState) -> Iterator[StepSample]:
    """Yield a sample of a step for each draft message."""
    for n, row in enumerate(state.simulation.drafts, 1):
        yield StepSample(
            step=state.step.n + n,
            kind="add",
            policy=state.window.policy,
            after=state.window.totals,
            history=state.window.totals,
            seqs=range(row.seq, row.seq + 1),
            arrival=MessageView(row.seq, row.type, row.has_calls, row.tokens),
        )


def _mark(count: int, width: float) -> str:
    """Return the number of messages of a step as text, or "+" if there is no room for it."""
    return str(count) if DIGIT * len(str(count)) <= width else "+"


def _words(
    state: ConversationState,
    column: StepSample,
    life: str,
    is_draft: bool,
    shows_tokens: bool,
    unanswered: frozenset[int],
) -> str:
    seqs, arrival, is_later = column.seqs, column.arrival, life == "is-later"
    if not seqs:
        return f"Step {column.step:,}: {happened(column.kind)}"
    if arrival is None:
        in_memory = len(state.in_window.intersection(seqs))
        status = "not said yet" if is_later else f"{in_memory:,} in memory"
        return f"#{seqs[0]:,} to #{seqs[-1]:,}: {counted(len(seqs), 'message')}, {status}"
    name = "Draft" if is_draft else f"#{arrival.seq:,}"
    weight = f", {arrival.tokens:,} tok" if shows_tokens and not is_later else ""
    status = "not said yet" if is_draft or is_later else "in memory"
    if not unanswered.isdisjoint(seqs):
        status = "tool call not answered"
    elif arrival.seq in state.window.hidden and not is_draft:
        status = "over the limit"
    elif life == "is-out" and not is_draft and state.simulation.is_replay:
        status = "not in memory in this replay"
    elif life == "is-out" and not is_draft:
        status = f"left memory at step {column.left_step:,}" if column.left_step else "left memory"
        status += ", terms in the index" if arrival.seq in state.indexed else ""
    return f"{name} {_look(column).role}{weight}, {status}"


def _look(column: StepSample) -> MessageStyle:
    """Return the style of the message that arrived at a step."""
    if column.kind == Change.INDEX or column.arrival is None:
        return OF_INDEX
    return STYLES[column.arrival.type, column.arrival.has_calls]


def brackets(state: ConversationState) -> str:
    """Return the SVG path of brackets under the steps whose messages a summary replaced. Each step
    is one column wide. A bracket that continues outside of the strip has an open end.
    """
    part = () if state.simulation.is_replay else state.step.samples.part
    runs = [run for each in state.contents.summaries.values() for run in each.runs]
    is_covered = [
        each.kind != "compact" and any(_meet(run, each.seqs) for run in runs) for each in part
    ]
    path, begin = "", 0
    for is_run, run in groupby(is_covered):
        end = begin + len(list(run))
        if is_run:
            goes_on = begin == 0 and min(each.start for each in runs) < part[0].seqs.start
            left = part[begin].step - 1
            path += f"M{left} 3" if goes_on else f"M{left} 0V3"
            ends_later = end == len(part) and max(each.stop for each in runs) > part[-1].seqs.stop
            path += f"H{part[end - 1].step}" + ("" if ends_later else "V0")
        begin = end
    return path


def _meet(one: range, other: range) -> bool:
    """Return whether two ranges have a number in common."""
    return max(one.start, other.start) < min(one.stop, other.stop)


def strip_labels(strip: Sequence[Cell], at: int, flag: str) -> list[Label]:
    """Return the labels below a strip: names of its parts, such as "left memory", and numbers of
    steps.

    The flag of the shown step gets room first, then the names, then the numbers.
    """
    row = LabelRow(strip_width(len(strip)))
    first, last = strip[0].step, strip[-1].step
    half = flag_width(flag) / 2
    place = row.width * _percent(max(at - first + 1, 0), strip) / 100
    row.reserve(place - half, place + half)
    for label in _names(strip, at - first, half + GAP):
        if label.text not in {placed.text for placed in row.labels}:
            row.add(label)
    numbers = round_numbers(first, last, row.width)
    row.add(
        Label(f"{last:,}", 100, "end"),
        *(Label(f"{n:,}", _percent(n - first + 0.5, strip)) for n in numbers),
    )
    return row.labels


def _names(strip: Sequence[Cell], head: int, beside: float) -> Iterator[Label]:
    """Yield labels that name the parts of the strip: system, window, not said yet, left memory.

    There are two labels "left memory", at the end and in the middle of its cells: the first that
    fits is shown.
    """
    lives = [cell.css.split()[0] for cell in strip]
    if strip[0].step == 1 and lives[0] == "is-in" and strip[0].glyph == "system":
        yield Label("system", 0, "start")
    window = lives[: head + 1][::-1]
    kept = next((n for n, life in enumerate(window) if life != "is-in"), len(window))
    if kept * strip_width(len(strip)) / len(strip) >= beside + text_width("window"):
        yield Label("window", _percent(head + 1, strip), "end", "win", dx=-beside)
    if head + 1 < len(strip) and not strip[max(head, 0)].is_draft:
        yield Label("not said yet", _percent(head + 1, strip), "start", dx=beside)
    others = {"is-tick", UNANSWERED}
    out = [
        i
        for i, cell in enumerate(strip)
        if lives[i] == "is-out" and others.isdisjoint(cell.css.split())
    ]
    if out:
        yield Label("left memory", _percent(out[-1] + 1, strip), "end")
        yield Label("left memory", _percent((out[0] + out[-1] + 1) / 2, strip))


def _percent(columns: float, strip: Sequence[Cell]) -> float:
    return round(100 * columns / len(strip), 2)
