"""Ranges of steps, with their first and last step."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return ranges that cover the same steps, in order, with gaps between them."""
    found: list[Span] = []
    for first, last in sorted(span for span in spans if span[0] <= span[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def clipped(spans: Iterable[Span], within: Span) -> tuple[Span, ...]:
    """Return the parts of ranges that are within another."""
    first, last = within
    parts = ((max(begin, first), min(end, last)) for begin, end in spans)
    return tuple(part for part in parts if part[0] <= part[1])
