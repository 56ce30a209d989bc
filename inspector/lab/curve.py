"""The chart of the lab: what each limit holds, as paths, with its axis and the limits in force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from chatmemory.queries import Fleet, LimitPoint
from inspector.conversation.timeline.labels import GAP, Label

DRAWN = 240
MARKED_LIMITS = 3
TICKS = 8
# The least widths of the chart in pixels: on a phone, and on larger screens in large type. Beside
# it labels may use MARGIN. They stand BESIDE the line of their limit.
NARROW, WIDE = 240.0, 500.0
MARGIN = 16.0
BESIDE = 5.0


class Mark(NamedTuple):
    """A limit, with its line at x of 1,000."""

    limit: int
    x: float

    @property
    def label(self) -> Label:
        """The label of the line: on its middle, or as far right as there is room."""
        label = Label(f"{self.limit:,}", round(self.x / 10, 2))
        _, end = label.span(NARROW)
        is_cut = end > NARROW + MARGIN
        return replace(label, anchor="end", dx=MARGIN) if is_cut else label


class Curve:
    """The chart of a fleet, in which a limit is marked."""

    def __init__(self, found: Fleet, pick: LimitPoint) -> None:
        self._last = found.points[-1].limit
        apart = -(-len(found.points) // DRAWN)
        drawn = [*found.points[apart - 1 :: apart], found.points[-1]]
        xs = [self._mark(point.limit).x for point in drawn]
        sums = found.sums
        self.picked = self._mark(pick.limit)
        self.held_path = _path(xs, [point.held for point in drawn], sums.recalls)
        self.held_area = f"{self.held_path}L1000 100L{xs[0]:.1f} 100Z"
        self.lossless_path = _path(xs, [point.lossless for point in drawn], sums.count)
        self.cost_path = _path(xs, [point.prompts for point in drawn], sums.everything)
        # The limits in force that most conversations have; of equally many, the smallest
        common = Counter(dict(sorted(found.limits.items()))).most_common(MARKED_LIMITS)
        self.today = [self._mark(limit) for limit, _ in sorted(common)]

    def _mark(self, limit: int) -> Mark:
        return Mark(limit, min(1000.0, limit * 1000 / self._last))

    @property
    def labels(self) -> Iterator[tuple[str, str, int, Sequence[Label]]]:
        """Yield groups of labels: the style, the height, the pixels below it, and the labels."""
        yield "lab__now lab__phone", "97%", 0, labels_in(self.today, NARROW)
        yield "lab__now lab__desk", "97%", 0, labels_in(self.today, WIDE)
        yield "lab__chosen", "0", -5, [self.picked.label]
        yield "lab__tick", "100%", 16, [tick.label for tick in self.ticks]

    @property
    def ticks(self) -> list[Mark]:
        """Round limits along the axis."""
        rough = max(self._last / TICKS, 1)
        round_numbers = (step * 10**power for power in range(12) for step in (1, 2, 5))
        apart = next(number for number in round_numbers if number >= rough)
        return [self._mark(limit) for limit in range(apart, self._last + 1, apart)]


def _path(xs: Sequence[float], values: Sequence[int], whole: int) -> str:
    """Return a line through values, as hundredths of a whole."""
    heights = (100 - 100 * value / max(1, whole) for value in values)
    return "M" + "L".join(f"{x:.1f} {y:.2f}" for x, y in zip(xs, heights, strict=True))


def labels_in(marks: Sequence[Mark], width: float) -> list[Label]:
    """Return the labels of limits, from the smallest, in a chart at least so many pixels wide.

    Those that would touch are one, after the last of their lines or before the first. One for which
    the chart has no room is left out.
    """
    groups: list[list[Mark]] = []
    for mark in marks:
        groups.append([mark])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], width):
            last = groups.pop()
            groups[-1] += last
    labels = [_label(group, width) for group in groups]
    return [label for label in labels if _is_inside(label, width)]


def _label(group: Sequence[Mark], width: float) -> Label:
    text = f"today {', '.join(f'{each.limit:,}' for each in group)}"
    after = Label(text, round(group[-1].x / 10, 2), "start", dx=BESIDE)
    before = Label(text, round(group[0].x / 10, 2), "end", dx=-BESIDE)
    return after if _is_inside(after, width) else before


def _touch(group: Sequence[Mark], other: Sequence[Mark], width: float) -> bool:
    """Whether the label or a line of a group would touch those of the group after it."""
    _, end = _label(group, width).span(width)
    start, _ = _label(other, width).span(width)
    last, first = (width * each.x / 1_000 for each in (group[-1], other[0]))
    return max(end, last) + GAP > min(start, first)


def _is_inside(label: Label, width: float) -> bool:
    start, end = label.span(width)
    return start >= -MARGIN and end <= width + MARGIN
