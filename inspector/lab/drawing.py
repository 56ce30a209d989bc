"""The chart of a comparison: the tokens of each window by message, as paths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from chatmemory.queries import Compared, Comparison

COLUMNS_MAX = 400
HEIGHT = 100


def columns(size: int) -> list[range]:
    """Return which messages stand in each column: one, or several of a long history."""
    count = min(size, COLUMNS_MAX)
    edges = [place * size // count for place in range(count + 1)] if count else [0]
    return [range(first, last) for first, last in pairwise(edges)]


def top_of(found: Comparison) -> int:
    """Return the tokens at the upper end of the chart."""
    return max(1, sum(found.history.tokens) + found.history.overhead)


def stepped(values: Sequence[int], top: int) -> str:
    """Return a path of steps; a column has the largest value of its messages."""
    heights = [max(values[place] for place in each) for each in columns(len(values))]
    parts = [f"V{HEIGHT - value * HEIGHT / top:.2f}H{x}" for x, value in enumerate(heights, 1)]
    return f"M0 {HEIGHT}{''.join(parts)}" if parts else ""


def said(found: Comparison) -> str:
    """Return the area of everything that was said."""
    overhead = found.history.overhead
    path = stepped(
        [tokens + overhead for tokens in accumulate(found.history.tokens)], top_of(found)
    )
    return f"{path}V{HEIGHT}Z" if path else ""


def limit_line(each: Compared, top: int, width: int) -> str:
    """Return the line of a limit in tokens, if it is within the chart."""
    policy = each.policy
    if policy is None or policy.unit != "tokens" or policy.limit > top:
        return ""
    return f"M0 {HEIGHT - policy.limit * HEIGHT / top:.2f}H{width}"


def strip(each: Compared, at: int) -> str:
    """Return the messages that are in the window at a place, as ranges of columns."""
    size = len(each.history)
    drawn: list[list[int]] = []
    for x, places in enumerate(columns(size)):
        if not any(each.has(place, at) for place in places):
            continue
        if drawn and drawn[-1][1] == x:
            drawn[-1][1] = x + 1
        else:
            drawn.append([x, x + 1])
    return "".join(f"M{first} 5H{last}" for first, last in drawn)
