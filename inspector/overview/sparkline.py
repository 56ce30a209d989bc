"""A sparkline in a row of the overview, as SVG paths."""

from __future__ import annotations

from collections.abc import Sequence


def spark(loads: Sequence[int], limit: int | None) -> tuple[str, str, float | None]:
    """Return the area path, the line path and the limit's height in a box of 40 by 20.

    The last load is at the right edge.
    """
    top = max([limit or 0, *loads, 1]) * 1.1
    heights = [20 - 20 * load / top for load in loads]
    start = 40 - len(heights)
    points = "".join(f"V{y:.1f}H{start + i + 1}" for i, y in enumerate(heights))
    if not heights:
        return "", "", None
    line = f"M{start} {heights[0]:.1f}{points}"
    return f"M{start} 20{points}V20Z", line, round(20 - 20 * limit / top, 1) if limit else None
