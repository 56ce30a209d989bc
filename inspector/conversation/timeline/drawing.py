"""The timeline as templates draw it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from chatmemory import Policy
from chatmemory.queries import ConversationState, PhraseMatches, StepPoint, StepPoints
from inspector.conversation.measures import Measure
from inspector.conversation.timeline.cells import Cell, CellLinks, cells
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

KEPT = 128  # charts, as many as there are outlines


@dataclass(frozen=True)
class Timeline:
    """A chart of all steps, and a strip of cells for the steps from `first` to `last`.

    `at` is the step of the playhead, drafts included, which stands at the first cell also at step
    0. `band` are the steps at which memory held what was searched for, as a path and in words.
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
    def floor(self) -> int:
        """The y of the chart's base line."""
        return HEIGHT

    @property
    def height(self) -> int:
        """The height of the chart, with the evictions below it if the strip has not all steps."""
        return HEIGHT if self.is_whole else HEIGHT + EVICTIONS


def draw(state: ConversationState, measure: Measure, links: CellLinks) -> Timeline | None:
    """Return the timeline with its playhead at the state's step, or None if there is no step."""
    strip = cells(state, measure, links)
    if not strip:
        return None
    at, first, last = state.at + len(state.drafts), strip[0].step, strip[-1].step
    drawn = _chart(state, measure)
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


def _chart(state: ConversationState, measure: Measure) -> Chart:
    """Return the chart of the state, which is kept if it is the same at steps around it."""
    outline, policy = state.samples.outline, state.window.policy
    if state.is_simulated or not outline.by_step:
        is_tried = state.stored_window.policy != policy
        return chart(_points(state, measure), measure.limit, is_tried)
    return _kept_chart(outline, policy)


@lru_cache(maxsize=KEPT)
def _kept_chart(outline: StepPoints, policy: Policy | None) -> Chart:
    measure = Measure.of(policy)
    return chart(list(_measured(outline.by_step.values(), measure)), measure.limit)


def _points(state: ConversationState, measure: Measure) -> list[Point]:
    """Return the points of the chart in the unit of the policy in force; drafts take the place of
    the steps after the playhead, and a limit that is tried alone that of the playhead's step.
    """
    part = state.samples.part
    stored = list(_measured(state.samples.outline.by_step.values() or part, measure))
    if not state.is_simulated:
        return stored
    here = [sample for sample in part if sample.step == state.at]
    simulated = list(_measured(here, measure))
    if state.drafts:
        simulated += _drafts(state, measure, *simulated)
    else:
        memory, limit = measure.load(*state.window.totals), measure.limit
        simulated = [replace(p, memory=memory, limit=limit, is_draft=True) for p in simulated]
    first, last = state.at or 1, state.at + len(state.drafts)
    before = [point for point in stored if point.step < first]
    return [*before, *simulated, *(point for point in stored if point.step > last)]


def _measured(points: Iterable[StepPoint], measure: Measure) -> Iterator[Point]:
    """Yield points as a policy measures them; a limit in another unit is left out."""

    @cache
    def limit_of(policy: Policy | None) -> int | None:
        own = Measure.of(policy)
        return own.limit if own.unit == measure.unit else None

    for point in points:
        yield Point(
            step=point.step,
            said=measure.load(*point.said),
            memory=measure.load(*point.after),
            limit=limit_of(point.policy),
            forgotten=point.last_seq - point.after.count,
        )


def _drafts(
    state: ConversationState, measure: Measure, here: Point | None = None
) -> Iterator[Point]:
    """Yield the points of the drafts behind that of the state's step; step 0 has none."""
    after = {change.seq: change.after for change in state.simulated or ()}
    said = here.said if here else 0
    for n, draft in enumerate(state.drafts, 1):
        said += measure.cost(draft.tokens)
        yield Point(
            step=state.at + n,
            said=said,
            memory=measure.load(*after[draft.seq]),
            limit=measure.limit,
            forgotten=here.forgotten if here else 0,
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
