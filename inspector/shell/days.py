"""A small bar chart with a bar for each day: in how many conversations a problem began on that
day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BAR, HEIGHT = 6, 22  # the width of a day


class Bar(NamedTuple):
    """The bar of a day in the coordinates of the chart: its left edge, its top and its height.
    `is_new` marks the bar of today, if a problem began today. `is_marked` marks the day of a policy
    change.
    """

    left: int
    top: str
    height: str
    is_new: bool
    is_marked: bool = False


def bars_of(days: Sequence[int], marked: int | None = None) -> list[Bar]:
    """Return a bar for each day. `days` has the number of conversations for each day, today last.
    `marked` is the index of the day of a policy change, or None.
    """
    most, last = max(*days, 1), len(days) - 1
    heights = [HEIGHT * count / most if count else 1 for count in days]
    return [
        Bar(
            n * BAR,
            f"{HEIGHT + 2 - height:.1f}",
            f"{height:.1f}",
            n == last and bool(days[n]),
            n == marked,
        )
        for n, height in enumerate(heights)
    ]
