"""Ranges of steps in which a phrase is in memory, and the messages that arrived when such a range
began or ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory.models import Stay, Step

Span = tuple[int, int]  # the first and the last of some steps


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sort ranges of steps, and join those that overlap or touch."""
    found: list[Span] = []
    for first, last in sorted(span for span in spans if span[0] <= span[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def clipped(spans: Iterable[Span], within: Span) -> tuple[Span, ...]:
    """Return the parts of the ranges that lie `within` another range."""
    first, last = within
    parts = ((max(begin, first), min(end, last)) for begin, end in spans)
    return tuple(part for part in parts if part[0] <= part[1])


def arrivals_at(memory_id: str, steps: Iterable[int]) -> dict[int, int]:
    """Return a dict from each given step to the seq of the message that the step added. Steps that
    added no message are left out.
    """
    numbers = Step.objects.filter(memory_id=memory_id, n__in=list(steps), kind=Step.Kind.ADD)
    stays = Stay.objects.filter(
        memory_id=memory_id, n__in=list(numbers.values_list("last_stay", flat=True))
    )
    return dict(stays.values_list("entered_step", "seq"))
