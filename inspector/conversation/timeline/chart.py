"""The chart of the timeline: the sizes of history and memory after each step, as SVG paths.

Each path lies in a box that is one unit wide for each step, and HEIGHT units high, with y
downwards. A path consists of relative lines. Neighboring steps with the same height share one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from chatmemory.reading.steps import StepPoint, StepPoints
from inspector.conversation.measures import Measure
from inspector.shell.state import ConversationState

HEIGHT = 200
EVICTIONS = 24
# If the history is so many times as large as memory, each has an axis: memory's is below SPLIT.
OWN_AXIS = 5
SPLIT, GAP = 64, 16
# The limit is in the chart if it is at most so many times as large as everything else in it.
LIMIT_SHARE = 2
# The height of labels beside the chart, in percent of the lowest chart.
LABEL = 24


class Point(NamedTuple):
    """The sizes of history and memory after a step, in the policy's unit.

    `limit` is the limit at that step. None if there was no limit, or a limit in another unit.
    `forgotten` is how many messages have left memory so far.
    """

    step: int
    history: int
    memory: int
    limit: int | None
    forgotten: int = 0
    is_draft: bool = False


@dataclass(frozen=True)
class Scale:
    """A vertical axis for sizes, with y downwards. The size 0 is at y `base`, and the size `top` at
    y `roof`.
    """

    top: int
    roof: int = 0
    base: int = HEIGHT

    def y(self, load: int) -> int:
        return self.base - (self.base - self.roof) * load // self.top

    def part(self, load: int) -> float:
        """Return the position of a size in percent of the chart's height, from its top."""
        return 100 * self.y(load) / HEIGHT


@dataclass(frozen=True)
class AxisLabel:
    """A number beside the chart, `y` percent below its top."""

    text: str
    y: float
    css: str = ""


@dataclass(frozen=True)
class DraftBar:
    """A draft message in the chart. `x` is its column. `history` and `memory` are the y coordinates
    for the sizes of history and memory after the draft.
    """

    x: int
    history: int
    memory: int


class Chart:
    """The SVG paths of the chart, made from points in the order of steps.

    - The argument `limit` is the limit of the shown step, or a simulated limit if `is_tried` is
      True. It gets a label beside the chart.
    - `limits` is the path of the limits that were in force at each step.
    - `tried` is the path of a simulated limit; "" without a simulated limit. A limit above the
      chart is not drawn.
    - `base` is the y of the history's base line: HEIGHT, or less if memory has its own axis below.
    """

    def __init__(self, points: Sequence[Point], limit: int | None, is_tried: bool = False) -> None:
        history, memory = _scales(points, limit)
        tried = limit if is_tried and limit and limit <= memory.top else None
        steps = [point.step for point in points]
        self.columns, self.base = points[-1].step, history.base
        self.history = _area(steps, [history.y(point.history) for point in points], history.base)
        self.memory = _area(steps, [memory.y(point.memory) for point in points], memory.base)
        self.limits = "".join(_limits(points, memory))
        self.tried = f"M0 {memory.y(tried)}H{self.columns}" if tried else ""
        self.evictions = _evictions(points)
        self.labels = _labels(history, memory, limit)
        self.drafts = [
            DraftBar(point.step - 1, history.y(point.history), memory.y(point.memory))
            for point in points
            if point.is_draft
        ]

    @property
    def is_split(self) -> bool:
        """Whether memory has its own axis below that of the history."""
        return self.base < HEIGHT


def chart_of(state: ConversationState, measure: Measure) -> Chart:
    """Return the chart of a conversation in the unit of the policy in force."""
    if not state.is_simulated:
        return _stored_chart(state.step.samples.outline, measure)
    is_tried = state.stored.window.policy != state.window.policy
    return Chart(_simulated_points(state, measure), measure.limit, is_tried)


@lru_cache(maxsize=64)
def _stored_chart(outline: StepPoints, measure: Measure) -> Chart:
    """Return the chart of stored steps. The result is cached, because it stays the same when the
    page shows another step.
    """
    return Chart(_measured(outline.values(), measure), measure.limit)


def _simulated_points(state: ConversationState, measure: Measure) -> list[Point]:
    """Return the points of the chart of a simulation: drafts replace the steps after the shown
    step. Without drafts, the shown step has the simulated limit.
    """
    part = state.step.samples.part
    stored = _measured(state.step.samples.outline.values(), measure)
    simulated = _measured([sample for sample in part if sample.step == state.step.n], measure)
    if state.simulation.drafts:
        simulated += _drafts(state, measure, *simulated)
    else:
        memory, limit = measure.load(state.window.totals), measure.limit
        simulated = [p._replace(memory=memory, limit=limit, is_draft=True) for p in simulated]
    first, last = state.step.n or 1, state.step.n + len(state.simulation.drafts)
    before = [point for point in stored if point.step < first]
    return [*before, *simulated, *(point for point in stored if point.step > last)]


def _measured(steps: Iterable[StepPoint], measure: Measure) -> list[Point]:
    """Return a point for each step, measured by a policy. Limits in another unit than the policy's
    are left out.
    """

    points: list[Point] = []
    for policy, run in groupby(steps, key=attrgetter("policy")):
        own = Measure.of(policy)
        limit = own.limit if own.unit == measure.unit else None
        points += [
            Point(
                step=step.step,
                history=measure.load(measure.history(step.step, step.history)),
                memory=measure.load(measure.memory(step.step, step.after)),
                limit=limit,
                forgotten=step.last_seq - step.after.count,
            )
            for step in run
        ]
    return points


def _drafts(
    state: ConversationState, measure: Measure, here: Point | None = None
) -> Iterator[Point]:
    """Yield a point for each draft. `here` is the point of the shown step, to which drafts add;
    None at step 0.
    """
    after = {change.seq: change.after for change in state.simulation.changes or ()}
    history, forgotten = (here.history, here.forgotten) if here else (0, 0)
    for n, draft in enumerate(state.simulation.drafts, 1):
        history += measure.weigh(draft)
        memory = measure.load(after[draft.seq])
        yield Point(state.step.n + n, history, memory, measure.limit, forgotten, is_draft=True)


def _scales(points: Sequence[Point], limit: int | None) -> tuple[Scale, Scale]:
    """Return the axis of the history and the axis of memory. Both are the same axis, unless memory
    would be too flat to see on it.
    """
    history = max(1, *(point.history for point in points))
    memory = max(1, *(point.memory for point in points))
    limits = {each for each in (limit, *(p.limit for p in points)) if each}

    def top(most: int) -> int:
        return max([most, *(each for each in limits if each <= LIMIT_SHARE * most)])

    if history < OWN_AXIS * top(memory):
        scale = Scale(round_up(top(max(history, memory))))
        return scale, scale
    return Scale(round_up(history), base=SPLIT), Scale(round_up(top(memory)), roof=SPLIT + GAP)


def round_up(number: int) -> int:
    """Round up to at most two significant digits, so that an axis ends at a round number, such as
    1,300 for 1,234.
    """
    scale: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // scale) * scale


def short_number(number: int) -> str:
    """Format a number for little room: below 10,000 in full, else rounded to three digits, such as
    `12.5k`, `128k` or `1.05M`.
    """
    if number < 10_000:
        return f"{number:,}"
    unit, size = ("k", 1_000) if number < 1_000_000 else ("M", 1_000_000)
    return f"{float(f'{number / size:.3g}'):,g}{unit}"


def _area(steps: Sequence[int], heights: Sequence[int], base: int) -> str:
    """Return an area under these heights as an SVG path. Its other sides are outside the chart, so
    that only the upper outline is seen.
    """
    last, below = steps[-1], base if base < HEIGHT else 2 * HEIGHT
    return f"M-{last} {below}V{heights[0]}h{last}{_stairs(steps, heights)}h{last}V{below}z"


def _stairs(steps: Sequence[int], heights: Sequence[int]) -> str:
    """Return lines from step 0 to the last step. Each height is drawn from the previous step to its
    own step.
    """
    path, at, level = "", 0, heights[0]
    for height, run in groupby(zip(steps, heights, strict=True), key=lambda pair: pair[1]):
        *_, (end, _) = run
        path += f"v{height - level}" if height != level else ""
        path += f"h{end - at}"
        at, level = end, height
    return path


def _limits(points: Sequence[Point], scale: Scale) -> Iterator[str]:
    """Yield the limits in force as lines. Limits above the chart are left out."""
    begin = 0
    for limit, run in groupby(points, key=lambda point: point.limit):
        *_, last = run
        if limit is not None and limit <= scale.top:
            yield f"M{begin} {scale.y(limit)}H{last.step}"
        begin = last.step


def _evictions(points: Sequence[Point]) -> str:
    """Return the numbers of messages that left memory between the points, as an area below the
    chart.
    """
    before = [0, *(point.forgotten for point in points)]
    counts = [max(0, point.forgotten - n) for point, n in zip(points, before, strict=False)]
    most = max(1, *counts)
    depths = [-(-EVICTIONS * count // most) for count in counts]
    return f"M0 {HEIGHT}v{depths[0]}{_stairs([p.step for p in points], depths)}V{HEIGHT}z"


def _labels(history: Scale, memory: Scale, limit: int | None) -> list[AxisLabel]:
    """Return the labels of the axes and of the limit. The label of an axis's end is left out if it
    would touch the label of the limit.
    """
    top = short_number(memory.top)
    highest, lowest = memory.part(memory.top) + LABEL / 2, memory.part(0) - LABEL / 2
    labels = []
    if history is not memory:
        top = f"memory {top}"
        labels.append(AxisLabel(f"said {short_number(history.top)}", LABEL / 2))
    if limit is not None:
        is_above = limit > memory.top
        place = highest + LABEL if is_above else min(max(memory.part(limit), highest), lowest)
        words = f"limit {short_number(limit)}{' ↑' if is_above else ''}"
        labels.append(AxisLabel(words, place, "lim"))
    for text, y in ((top, highest), ("0", lowest)):
        if all(abs(label.y - y) >= LABEL for label in labels):
            labels.append(AxisLabel(text, y))
    return sorted(labels, key=lambda label: label.y)
