"""Labels on the lab's chart: of its axis, and of the limits in force, of which no two touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.conversation.timeline import Label
from inspector.conversation.timeline.labels import GAP

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
