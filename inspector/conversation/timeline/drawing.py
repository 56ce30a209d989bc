"""The timeline as templates draw it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from chatmemory import Policy, can_decide, load_or_tokens
from chatmemory.queries import ConversationState, PhraseMatches, StepPoint, StepPoints
from inspector.conversation.measures import cost, limit_of, said_load, short_unit
from inspector.conversation.timeline.cells import Cell, cells
from inspector.conversation.timeline.chart import EVICTIONS, HEIGHT, Chart, Point, chart
from inspector.conversation.timeline.labels import (
    GAP,
    Label,
    LabelRow,
    axis,
    flag_width,
    round_numbers,
    strip_width,
    text_width,
)

LISTED_RANGES = 5

# The chart of an outline, with the policy and the limit for which it was drawn last.
_KEPT: WeakKeyDictionary[StepPoints, tuple[tuple[Policy | None, int | None], Chart]]
_KEPT = WeakKeyDictionary()


@dataclass(frozen=True)
class Timeline:
    """A chart of all steps, and a strip of cells for the steps from `first` to `last`.

    `at` is the step of the playhead, drafts included. `band` are the steps at which memory held
    what was searched for, as a path and in words.
    """

    chart: Chart
    axis: tuple[Label, ...]
    cells: tuple[Cell, ...]
    labels: tuple[Label, ...]
    first: int
    last: int
    at: int
    flag: str
    band: str
    band_words: str
    is_simulated: bool

    @property
    def is_whole(self) -> bool:
        """Whether the strip has all steps."""
        return self.span == self.chart.columns

    @property
    def before(self) -> int:
        """The number of steps before the strip, which is also its left end in the chart."""
        return self.first - 1

    @property
    def span(self) -> int:
        return self.last - self.first + 1

    @property
    def head(self) -> int:
        """The position of the playhead's cell in the strip; the first also at step 0."""
        return max(self.at - self.first, 0)

    @property
    def floor(self) -> int:
        """The y of the chart's base line."""
        return HEIGHT

    @property
    def height(self) -> int:
        """The height of the chart, with the evictions below it if the strip has not all steps."""
        return HEIGHT if self.is_whole else HEIGHT + EVICTIONS


def draw(state: ConversationState) -> Timeline | None:
    """Return the timeline with its playhead at the state's step, or None if there is no step."""
    strip = cells(state)
    if not strip:
        return None
    at, first, last = state.at + len(state.drafts), strip[0].step, strip[-1].step
    drawn = _chart(state)
    flag = "draft" if state.drafts else f"{at:,}"
    return Timeline(
        chart=drawn,
        axis=tuple(axis(drawn.columns)),
        cells=strip,
        labels=tuple(strip_labels(strip, at, flag)),
        first=first,
        last=last,
        at=at,
        flag=flag,
        band="".join(f"M{begin - 1} 2H{end}" for begin, end in state.remembered),
        band_words=_band_words(state.mentions),
        is_simulated=state.is_simulated,
    )


def _chart(state: ConversationState) -> Chart:
    """Return the chart of the state, which is kept if it is the same at steps around it."""
    if state.is_simulated or not state.samples.outline.by_step:
        is_tried = state.stored_window.policy != state.window.policy
        return chart(list(_points(state)), limit_of(state), is_tried)
    measured_by = state.window.policy, limit_of(state)
    kept = _KEPT.get(state.samples.outline)
    if kept is None or kept[0] != measured_by:
        kept = measured_by, chart(list(_points(state)), measured_by[1])
        _KEPT[state.samples.outline] = kept
    return kept[1]


def _points(state: ConversationState) -> Iterator[Point]:
    """Yield the points of the chart in the unit of the policy in force; drafts take the place of
    the steps after the playhead, and a limit that is tried alone that of the playhead's step.
    """
    policy = state.window.policy
    stored = state.samples.outline.by_step.values() or state.samples.part
    simulated = list(_simulated(state))
    first = simulated[0].step if simulated else state.at + 1
    end = simulated[-1].step if simulated else state.at
    yield from (_point(point, policy) for point in stored if point.step < first)
    yield from simulated
    yield from (_point(point, policy) for point in stored if point.step > end)


def _point(point: StepPoint, policy: Policy | None) -> Point:
    is_measured = short_unit(point.policy) == short_unit(policy)
    return Point(
        step=point.step,
        said=said_load(policy, point.said),
        memory=load_or_tokens(policy, point.after),
        limit=point.policy.limit if can_decide(point.policy) and is_measured else None,
        forgotten=point.forgotten,
    )


def _simulated(state: ConversationState) -> Iterator[Point]:
    """Yield the point of the state's step, and those of the drafts behind it; none without a
    simulation.
    """
    policy = state.window.policy
    after = {change.seq: change.after for change in state.simulated or ()}
    base = next((each for each in state.samples.part if each.step == state.at), None)
    said = said_load(policy, base.said) if base else 0
    if base and state.is_simulated and not state.drafts:
        memory = load_or_tokens(policy, state.window.totals)
        yield replace(_point(base, policy), memory=memory, limit=limit_of(state), is_draft=True)
    elif base and state.drafts:
        yield _point(base, policy)
    for n, draft in enumerate(state.drafts, 1):
        said += cost(policy, draft.tokens)
        yield Point(
            step=state.at + n,
            said=said,
            memory=load_or_tokens(policy, after[draft.seq]),
            limit=limit_of(state),
            forgotten=base.forgotten if base else 0,
            is_draft=True,
        )


def strip_labels(strip: Sequence[Cell], at: int, flag: str) -> list[Label]:
    """Return the names of the parts of a strip and the numbers of steps below it.

    The playhead's flag comes first, then the names, then the numbers.
    """
    row = LabelRow(strip_width(len(strip)))
    first = strip[0].step
    head = _percent(max(at - first + 1, 0), strip)
    half = flag_width(flag) / 2
    place = row.width * head / 100
    row.reserve(place - half, place + half)
    for label in _names(strip, at - first, half + GAP):
        if label.text not in {placed.text for placed in row.labels}:
            row.add(label)
    row.add(Label(f"{strip[-1].step:,}", 100, "end"))
    for n in round_numbers(first, strip[-1].step, row.width):
        row.add(Label(f"{n:,}", _percent(n - first + 0.5, strip)))
    return row.labels


def _names(strip: Sequence[Cell], head: int, beside: float) -> Iterator[Label]:
    """Yield system, window, not said yet and forgotten, where there are such cells.

    Forgotten may stand at the end of its cells, or in their middle.
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
    out = [i for i, cell in enumerate(strip) if lives[i] == "is-out" and "is-tick" not in cell.css]
    if out:
        yield Label("forgotten", _percent(out[-1] + 1, strip), "end")
        yield Label("forgotten", _percent((out[0] + out[-1] + 1) / 2, strip))


def _percent(columns: float, strip: Sequence[Cell]) -> float:
    return round(100 * columns / len(strip), 2)


def _band_words(mentions: PhraseMatches) -> str:
    """Return the ranges of the band, and those that were looked at if they are only a part."""
    words = _in_words(mentions.spans)
    is_partial = mentions.is_partial and mentions.first_step > 1
    return f"{words}; only from {mentions.first_step:,} on looked at" if is_partial else words


def _in_words(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of steps: `4 to 42 and 47 to 58`, the first few of them."""
    words = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in ranges[:LISTED_RANGES]]
    if len(ranges) > LISTED_RANGES:
        words.append(f"{len(ranges) - LISTED_RANGES:,} more times")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
