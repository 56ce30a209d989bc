"""The axis of the lab's chart, and labels of limits in force, which stand apart at any width."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.recall.figures import Sums
from chatmemory.queries import Fleet, LimitPoint
from inspector.lab.curve import MARGIN, NARROW, TICKS, WIDE, Curve, Limit, labels_in

LAST = 3_000
LIMITS = st.lists(st.integers(1, 4_000), min_size=1, max_size=3, unique=True).map(sorted)


@given(st.integers(1, 2_000_000))
def test_ticks_are_round_and_neither_few_nor_many(last):
    found = Fleet(1, 1, Sums(1), [LimitPoint(last, 0, 0, 0)])
    ticks = Curve(found, None).ticks
    limits = [int(tick.words.replace(",", "")) for tick in ticks]
    apart = limits[0]
    assert str(apart).rstrip("0") in ("1", "2", "5")
    assert limits == list(range(apart, last + 1, apart))
    assert min(last, 3) <= len(limits) <= TICKS


@given(st.integers(1, 2_000_000), st.integers(0, 10**9), st.sampled_from([NARROW, WIDE]))
def test_no_number_of_the_axis_is_cut_at_the_right(last, picked, width):
    curve = Curve(Fleet(1, 1, Sums(1), [LimitPoint(last, 0, 0, 0)]), LimitPoint(picked, 0, 0, 0))
    for mark in (*curve.ticks, curve.picked):
        start, end = mark.label.span(width)
        assert end <= width + MARGIN
        assert mark.label.text == mark.words
        assert start <= mark.x * width / 1_000 <= end


def drawn(limits: list[int]) -> list[Limit]:
    return [Limit(limit, min(1_000.0, limit * 1_000 / LAST)) for limit in limits]


def texts(limits: list[int], width: float) -> list[str]:
    return [label.text for label in labels_in(drawn(limits), width)]


@given(LIMITS, st.sampled_from([NARROW, WIDE]), st.floats(1, 6))
def test_no_label_touches_another_or_the_line_of_another(limits, least, wider):
    """At the least width of a chart for which they are made, and at any larger one."""
    lines, width = drawn(limits), least * wider
    labels = labels_in(lines, least)
    spans = [label.span(width) for label in labels]
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    for start, end in spans:
        assert start >= -MARGIN
        assert end <= width + MARGIN
        assert not [each for each in lines if start < each.x * width / 1_000 < end]


@given(LIMITS)
def test_a_wide_chart_names_each_limit_once(limits):
    named = ", ".join(text.removeprefix("today ") for text in texts(limits, WIDE))
    assert named == ", ".join(f"{limit:,}" for limit in limits)


def test_limits_that_are_near_share_a_label():
    assert texts([100, 300, 2_000], WIDE) == ["today 100, 300", "today 2,000"]
    assert texts([100, 1_000, 2_900], WIDE) == ["today 100", "today 1,000", "today 2,900"]


def test_a_label_stands_before_a_line_at_the_end():
    (label,) = labels_in(drawn([3_000]), WIDE)
    assert (label.anchor, label.x) == ("end", 100)
