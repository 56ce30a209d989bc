"""Recall against cost, a dot for each strategy, as small SVG files for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from benchmarks.plots import svg, words

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 62, 56
LETTER, ROW = 6.6, 15.0  # pixels of a label
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5)


class Dot(NamedTuple):
    """A strategy: its cost, the share of the facts that it held, and whether it is ours."""

    label: str
    cost: float
    share: float
    is_ours: bool


@dataclass(frozen=True)
class Scatter:
    """A plot of strategies. `axis` says what cost 1.00 is."""

    title: str
    dots: Sequence[Dot]
    axis: str = "cost of the prompts, sending everything = 1.00"

    @property
    def described(self) -> str:
        """All values as text, for people who cannot see the plot."""
        return ". ".join(
            f"{each.label}: {each.share:.1%} held, cost {each.cost:.2f}" for each in self.dots
        )

    @property
    def costs(self) -> tuple[float, float]:
        found = [each.cost for each in self.dots]
        return floor(10 * min(*found, 1.0)) / 10, ceil(10 * max(*found, 1.0) + 0.4) / 10

    @property
    def least(self) -> float:
        """The lowest share that the plot shows."""
        return max(0.0, floor(20 * min(each.share for each in self.dots) - 0.2) / 20)

    def x(self, cost: float) -> float:
        first, last = self.costs
        return LEFT + (WIDTH - LEFT - RIGHT) * (cost - first) / (last - first)

    def y(self, share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (share - self.least) / (1 - self.least)


def draw(file: Path, plot: Scatter) -> None:
    """Write a plot as SVG."""
    drawn = [*_axes(plot), *_dots(plot)]
    file.write_text(svg(plot.title, plot.described, (WIDTH, HEIGHT), drawn), "utf-8")


def _axes(plot: Scatter) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for tick in _ticks(plot.least, 1.0):
        y = plot.y(tick)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield words(LEFT - 8, y + 4, f"{tick:.0%}", "axis", "end")
    for tick in _ticks(*plot.costs):
        yield words(plot.x(tick), bottom + 20, f"{tick:.2f}", "axis", "middle")
    one = plot.x(1.0)
    yield f'<path class="grid" stroke-dasharray="3 3" d="M{one:.1f} {TOP - 8}V{bottom}"/>'
    yield words(20, TOP - 12, "facts held", "axis")
    for css, place, name in (("memory", 0, "our windows"), ("user", 100, "frameworks")):
        x = WIDTH - RIGHT - 90 + place
        yield f'<g class="{css}"><circle cx="{x}" cy="{TOP - 34}" r="4.5"/></g>'
        yield words(x + 9, TOP - 30, name, "axis")
    yield words((LEFT + right) / 2, bottom + 42, plot.axis, "axis", "middle")


def _ticks(first: float, last: float) -> list[float]:
    """Return at most seven round numbers between two others."""
    step = next((each for each in STEPS if (last - first) / each <= 7), 1.0)
    start = ceil(round(first / step, 6))
    return [step * n for n in range(start, floor(round(last / step, 6)) + 1)]


def _dots(plot: Scatter) -> Iterator[str]:
    """Yield dots with their labels, which are moved down until they touch no other."""
    taken: list[tuple[float, float, float]] = []
    for dot in sorted(plot.dots, key=lambda each: (-each.share, each.cost)):
        x, y = plot.x(dot.cost), plot.y(dot.share)
        css = "memory" if dot.is_ours else "user"
        yield f'<g class="{css}"><circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"/></g>'
        at = _free(taken, x + 10, y + 4, LETTER * len(dot.label))
        taken.append((x + 10, at, x + 10 + LETTER * len(dot.label)))
        if at > y + ROW:
            yield f'<path class="grid" d="M{x:.1f} {y:.1f}L{x + 8:.1f} {at - 4:.1f}"/>'
        yield words(x + 10, at, dot.label, "value")


def _free(
    taken: Sequence[tuple[float, float, float]], left: float, y: float, width: float
) -> float:
    """Return the first height from `y` down at which a label touches no other."""
    while any(
        abs(y - other) < ROW - 1 and left < end and begin < left + width
        for begin, other, end in taken
    ):
        y += 1
    return y
