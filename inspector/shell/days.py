"""A small bar chart: for each of several days, the number of conversations in which a problem
began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BAR, HEIGHT = 6, 22  # the width of a day


class Bar(NamedTuple):
    """The bar of a day: its position, its top and its height. `is_new` is True for today if a
    problem began today. `is_marked` is True if a policy changed on this day.
    """

    left: int
    top: str
    height: str
    is_new: bool
    is_marked: bool = False


def bars_of(days: Sequence[int], marked: int | None = None) -> list[Bar]:
    """Return a bar for each number in `days`, today last. `marked` is the index of the day on which
    a policy changed.
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
