"""The chart of the lab: what each limit holds, as paths, with its axis and the limits in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory.queries import Fleet, LimitPoint
from inspector.conversation.timeline import Label
from inspector.conversation.timeline.labels import GAP

DRAWN = 240
MARKED_LIMITS = 3
TICKS = 8
# The least widths of the chart in pixels: on a phone, and on larger screens in large type. Beside
# it labels may use MARGIN. They stand BESIDE the line of their limit.
NARROW, WIDE = 240.0, 500.0
MARGIN = 16.0
BESIDE = 5.0


@dataclass(frozen=True)
class Limit:
    """A limit in force, with its line at x of 1,000."""

    limit: int
    x: float


@dataclass(frozen=True)
class Mark:
    """A line at a limit, at x of 1,000, with its words."""

    x: float
    words: str

    @property
    def label(self) -> Label:
        return number_at(self.words, self.x)


class Curve:
    """The chart of a fleet, in which a limit can be marked."""

    def __init__(self, found: Fleet, pick: LimitPoint | None) -> None:
        self._found = found
        self._points = found.points
        self._pick = pick

    @cached_property
    def _drawn(self) -> list[LimitPoint]:
        points = self._points
        apart = max(1, -(-len(points) // DRAWN))
        return [*points[apart - 1 :: apart], *points[-1:]] if points else []

    @property
    def _last(self) -> int:
        return self._points[-1].limit if self._points else 1

    def _x(self, limit: int) -> float:
        return min(1000.0, limit * 1000 / self._last)

    def _path(self, values: list[int], whole: int) -> str:
        pairs = (
            f"{self._x(point.limit):.1f} {100 - 100 * value / max(1, whole):.2f}"
            for point, value in zip(self._drawn, values, strict=True)
        )
        return f"M{'L'.join(pairs)}" if values else ""

    @property
    def held_path(self) -> str:
        return self._path([point.held for point in self._drawn], self._found.sums.recalls)

    @property
    def held_area(self) -> str:
        first = self._x(self._drawn[0].limit) if self._drawn else 0
        return f"{self.held_path}L1000 100L{first:.1f} 100Z" if self._drawn else ""

    @property
    def lossless_path(self) -> str:
        return self._path([point.lossless for point in self._drawn], self._found.sums.count)

    @property
    def cost_path(self) -> str:
        return self._path([point.prompts for point in self._drawn], self._found.sums.everything)

    @cached_property
    def today(self) -> list[Limit]:
        """The limits in force that most conversations have."""
        common = self._found.limits.most_common(MARKED_LIMITS)
        return [Limit(limit, self._x(limit)) for limit, _ in sorted(common)]

    @property
    def today_on_phones(self) -> list[Label]:
        return labels_in(self.today, NARROW)

    @property
    def today_on_desks(self) -> list[Label]:
        return labels_in(self.today, WIDE)

    @property
    def picked(self) -> Mark | None:
        return Mark(self._x(self._pick.limit), f"{self._pick.limit:,}") if self._pick else None

    @property
    def ticks(self) -> list[Mark]:
        """Round limits along the axis."""
        rough = self._last / TICKS
        apart = next(
            step * 10**power
            for power in range(12)
            for step in (1, 2, 5)
            if step * 10**power >= max(rough, 1)
        )
        return [Mark(self._x(n), f"{n:,}") for n in range(apart, self._last + 1, apart)]


def labels_in(limits: Sequence[Limit], width: float) -> list[Label]:
    """Return the labels of limits, from the smallest, in a chart at least so many pixels wide.

    Those that would touch are one, after the last of their lines or before the first. One for which
    the chart has no room is left out.
    """
    groups: list[list[Limit]] = []
    for limit in limits:
        groups.append([limit])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], width):
            last = groups.pop()
            groups[-1] += last
    labels = [_label(group, width) for group in groups]
    return [label for label in labels if _is_inside(label, width)]


def number_at(text: str, x: float) -> Label:
    """Return the label of a line at x of 1,000: on its middle, or as far right as there is room."""
    label = Label(text, round(x / 10, 2))
    _, end = label.span(NARROW)
    is_cut = end > NARROW + MARGIN
    return replace(label, anchor="end", dx=MARGIN) if is_cut else label


def _label(group: Sequence[Limit], width: float) -> Label:
    text = f"today {', '.join(f'{each.limit:,}' for each in group)}"
    after = Label(text, round(group[-1].x / 10, 2), "start", dx=BESIDE)
    before = Label(text, round(group[0].x / 10, 2), "end", dx=-BESIDE)
    return after if _is_inside(after, width) else before


def _touch(group: Sequence[Limit], other: Sequence[Limit], width: float) -> bool:
    """Whether the label or a line of a group would touch those of the group after it."""
    _, end = _label(group, width).span(width)
    start, _ = _label(other, width).span(width)
    last, first = (width * each.x / 1_000 for each in (group[-1], other[0]))
    return max(end, last) + GAP > min(start, first)


def _is_inside(label: Label, width: float) -> bool:
    start, end = label.span(width)
    return start >= -MARGIN and end <= width + MARGIN
