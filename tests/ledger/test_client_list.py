"""Ranks that order the stays of a window."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory.ledger.numbers import RANK_SPACING, appended_rank, head_rank, place_ranks

known = st.lists(st.integers(-40, 40), unique=True, max_size=6).map(sorted)


@st.composite
def lists_with_gaps(draw) -> list[int | None]:
    """Ascending ranks, with places to fill before, between and behind them."""
    ranks: list[int | None] = []
    for rank in draw(known):
        ranks += [None] * draw(st.integers(0, 4)) + [rank]
    return ranks + [None] * draw(st.integers(0, 2))


@pytest.mark.parametrize(
    ("ranks", "placed"),
    [
        ([8, None, None, None, 108], [8, 33, 58, 83, 108]),  # evenly spaced
        ([None, None, 5], [5 - 2 * RANK_SPACING, 5 - RANK_SPACING, 5]),
        ([4, None, None, 7], [4, 5, 6, 7]),
        ([2, None, 9, None, None, 11, 40], [2, 5, 9, None, None, None, None]),  # no room: appended
        ([3, None], [3, None]),
    ],
)
def test_gaps_are_filled(ranks, placed):
    assert place_ranks(ranks) == placed
    assert appended_rank(3) == 3_145_728, "as databases have them"


@given(lists_with_gaps())
def test_placed_ranks_ascend_and_known_ones_never_change(ranks):
    asked = list(ranks)
    placed = place_ranks(asked)
    assert asked == ranks
    assert len(placed) == len(ranks)
    filled = [rank for rank in placed if rank is not None]
    assert placed == filled + [None] * (len(ranks) - len(filled))
    assert all(low < high for low, high in pairwise(filled))
    assert all(rank in (None, new) for rank, new in zip(ranks, filled, strict=False))


@given(lists_with_gaps())
def test_placing_stops_only_at_the_end_or_where_no_rank_is_free(ranks):
    placed = place_ranks(ranks)
    last = next((j for j, rank in enumerate(placed) if rank is None), len(ranks)) - 1
    behind = [j for j in range(last + 1, len(ranks)) if ranks[j] is not None]
    assert not behind or ranks[behind[0]] - placed[last] < behind[0] - last


@given(lists_with_gaps())
def test_an_appended_rank_is_above_all_given_before(ranks):
    numbers = iter(range(1, len(ranks) + 1))
    given_before = [None if rank is None else appended_rank(next(numbers)) for rank in ranks]
    placed = [rank for rank in place_ranks(given_before) if rank is not None]
    assert all(rank < appended_rank(next(numbers, len(ranks) + 1)) for rank in placed)


def test_each_rank_at_the_head_leaves_room_behind_it():
    first = head_rank(appended_rank(1))
    assert place_ranks([first, None, appended_rank(1)])[1] == RANK_SPACING // 2
    assert head_rank(first) < first
