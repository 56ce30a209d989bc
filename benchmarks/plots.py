"""Plots of times by size, as small SVG files that are legible in light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10
from pathlib import Path

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM, INSET = 56, 24, 72, 52, 28
COLOURS = ("memory", "user")
STYLE = """
  svg { font: 13px system-ui, "Segoe UI", Roboto, Arial, sans-serif; background: #fff }
  .title { font-weight: 600; font-size: 16px; fill: #151b19 }
  .axis { fill: #606965 } .grid { stroke: #dfe2dc } .value { fill: #151b19 }
  .memory { stroke: #0a7566; fill: #0a7566 } .user { stroke: #2b68a3; fill: #2b68a3 }
  path { fill: none !important; stroke-width: 2 } text { stroke: none !important }
  @media (prefers-color-scheme: dark) {
    svg { background: #151a19 } .title, .value { fill: #e6eae8 } .axis { fill: #929c98 }
    .grid { stroke: #272e2c } .memory { stroke: #3fc4ac; fill: #3fc4ac }
    .user { stroke: #6fa6db; fill: #6fa6db }
  }"""


@dataclass(frozen=True)
class Plot:
    """Milliseconds of processor and waiting time, medians, for each size; sizes rise tenfold."""

    title: str
    sizes_of: str
    sizes: Sequence[int]
    lines: Mapping[str, Sequence[float]]

    @property
    def described(self) -> str:
        """All values as text, for people who cannot see the plot."""
        at = [
            f"{name}: "
            + ", ".join(
                f"{_number(ms)} ms at {size:,}" for size, ms in zip(self.sizes, values, strict=True)
            )
            for name, values in self.lines.items()
        ]
        return ". ".join(at) + "."

    def x(self, size: float) -> float:
        first, last = log10(self.sizes[0]), log10(self.sizes[-1])
        room = WIDTH - LEFT - RIGHT - 2 * INSET
        return LEFT + INSET + room * (log10(size) - first) / (last - first)

    def y(self, milliseconds: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * milliseconds / self.ticks[-1]

    @property
    def ticks(self) -> list[float]:
        """Four or so round numbers from 0 to above the largest time."""
        most = max(max(values) for values in self.lines.values()) * 1.1
        step = 10 ** floor(log10(most))
        step = next(step * part for part in (0.2, 0.5, 1, 2) if most / (step * part) <= 5)
        return [step * n for n in range(int(most / step) + 2)]


def draw(file: Path, plot: Plot) -> None:
    """Write a plot as SVG."""
    lines = (_line(plot, name, css) for name, css in zip(plot.lines, COLOURS, strict=False))
    file.write_text(svg(plot.title, plot.described, (WIDTH, HEIGHT), [*_axes(plot), *lines]))


def svg(title: str, described: str, size: tuple[int, int], drawn: Iterable[str]) -> str:
    """Return a picture with a title, and with `described` for people who cannot see it."""
    width, height = size
    place = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    role = 'role="img" aria-labelledby="title described"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {place} {role}>',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="described">{escape(described)}</desc>',
            f"<style>{STYLE}\n</style>",
            words(20, 30, title, "title"),
            *drawn,
            "</svg>\n",
        ]
    )


def _axes(plot: Plot) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    marks = []
    for tick in plot.ticks:
        y = plot.y(tick)
        marks.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        marks.append(words(LEFT - 8, y + 4, f"{tick:,g}", "axis", "end"))
    for size in plot.sizes:
        marks.append(words(plot.x(size), bottom + 20, f"{size:,}", "axis", "middle"))
    marks.append(words(LEFT - 8, TOP - 14, "ms", "axis", "end"))
    marks.append(words((LEFT + right) / 2, bottom + 40, plot.sizes_of, "axis", "middle"))
    return marks


def _line(plot: Plot, name: str, css: str) -> str:
    values = plot.lines[name]
    points = [(plot.x(size), plot.y(ms)) for size, ms in zip(plot.sizes, values, strict=True)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points)
    place = list(plot.lines).index(name)
    legend = f'<circle cx="{LEFT + 60 + 240 * place}" cy="{TOP - 18}" r="4"/>'
    legend += words(LEFT + 70 + 240 * place, TOP - 14, name, "value")
    numbers = "".join(
        words(x, y - 10, _number(ms), "value", "middle")
        for (x, y), ms in zip(points, values, strict=True)
    )
    return f'<g class="{css}"><path d="M{path}"/>{dots}{legend}{numbers}</g>'


def _number(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def words(x: float, y: float, text: str, css: str, anchor: str = "start") -> str:
    """Return a text of a picture."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{css}" {place}>{escape(text)}</text>'
