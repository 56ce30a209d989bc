"""Positions labels so that they do not overlap at any width of the browser.

Texts are assumed wider, and strips narrower, than they are. So labels that do not overlap here do
not overlap on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from inspector.conversation.looks import css_of

# In pixels. CHARACTER is a wide one at the size of the labels; MARGIN may be used beside a strip.
CHARACTER = 7.2
GAP = 8.0
MARGIN = 30.0
FLAG_PADDING, FLAG_MIN = 12.0, 28.0
CELL_MIN = 8.0
NARROW, WIDE = 300.0, 640.0

EVERY = sorted({int(n * 10**power) for power in range(7) for n in (1, 2, 2.5, 5)})


@dataclass(frozen=True)
class Label:
    """A text at `x` percent of a row, shifted by `dx` pixels. `anchor` is the part of the text that
    is at this position: start, middle or end. `drawn` lists the fields that the template of a label
    gets besides `text`.
    """

    drawn: ClassVar = ("x", "dx", "classes")

    text: str
    x: float
    anchor: str = "middle"
    css: str = ""
    dx: float = 0.0

    @property
    def classes(self) -> str:
        return css_of(self.anchor != "middle" and self.anchor, self.css)

    def span(self, row: float) -> tuple[float, float]:
        """Return the left and right end of the text in pixels, in a row of the given width."""
        width = text_width(self.text)
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        left = row * self.x / 100 + self.dx - width * share
        return left, left + width


class LabelRow:
    """A row of labels that do not overlap. The row is at least `width` pixels wide."""

    def __init__(self, width: float) -> None:
        self.width = width
        self.labels: list[Label] = []
        self._taken: list[tuple[float, float]] = []

    def reserve(self, left: float, right: float) -> None:
        self._taken.append((left, right))

    def add(self, *labels: Label) -> None:
        """Add the labels that have room, and leave out the others.

        A label has room if it is at least GAP pixels away from all labels and reserved parts of the
        row. It may extend beyond the ends of the row by up to MARGIN pixels.
        """
        for label in labels:
            left, right = label.span(self.width)
            is_inside = left >= -MARGIN and right <= self.width + MARGIN
            is_free = all(left >= end + GAP or start >= right + GAP for start, end in self._taken)
            if is_inside and is_free:
                self.reserve(left, right)
                self.labels.append(label)


def text_width(text: str) -> float:
    return CHARACTER * len(text)


def flag_width(text: str) -> float:
    """Return the width in pixels of the flag with this text, which marks the shown step."""
    return max(FLAG_MIN, text_width(text) + FLAG_PADDING)


def strip_width(cells: int) -> float:
    """Return the smallest width in pixels of a strip with this number of cells."""
    return max(NARROW, CELL_MIN * cells)


def round_numbers(first: int, last: int, width: float) -> range:
    """Return the round numbers from `first` to `last`, so far apart that their labels fit into
    `width` pixels.
    """
    every = round_distance(first, last, width)
    return range(-(-first // every) * every, last + 1, every)


def round_distance(first: int, last: int, width: float, among: int = 0) -> int:
    """Return the smallest round number, such as 25, by which neighboring labels can differ so that
    the labels fit into `width` pixels. With 25, the labels are 25, 50, 75.

    `among` is the difference between neighboring labels that the row already has, or 0 without
    labels. The returned number divides `among`, so that all labels have equal distances.
    """
    pixels = width / max(last - first + 1, 1)
    room = text_width(f"{last:,}") + GAP
    fitting = (n for n in EVERY if n * pixels >= room and among % n == 0)
    return next(fitting, among or EVERY[-1])


@lru_cache(maxsize=256)
def axis(last: int) -> Sequence[Label]:
    """Return the labels of an axis from step 0 to `last`. Labels with the class `wide` are shown
    only in a wide row.
    """
    narrow, wide = LabelRow(NARROW), LabelRow(WIDE)
    every = round_distance(1, last, NARROW)
    narrow.add(Label("0", 0, "start"), Label(f"{last:,}", 100, "end"), *_ticks(last, every))
    wide.add(*narrow.labels, *_ticks(last, round_distance(1, last, WIDE, among=every), "wide"))
    return tuple(wide.labels)


def _ticks(last: int, every: int, css: str = "") -> Iterable[Label]:
    numbers = range(every, last, every)
    return (Label(f"{n:,}", round(100 * n / last, 2), css=css) for n in numbers)
