"""The figures of a history over a grid, against replays, and their sums."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, MessageType, MessageWindow, TokenWindow, UserMessage
from chatmemory.core.recall import figures, recall_of
from chatmemory.core.recall.facts import history_from
from chatmemory.core.recall.figures import Figures, LimitPoint, Sums, figures_of, smallest

from ..properties import examples
from .test_loads import Halving
from .test_recall import histories, many_systems, none, one_system

SHORT = history_from([UserMessage("ab1"), AiMessage("ab1")], [9, 9], 3, [1, 2])
kinds = st.sampled_from(
    [
        MessageWindow(1),
        TokenWindow(1),
        Halving(1),
        MessageWindow(9, low_water="0.5", snap_to_user=True),
        TokenWindow(900, low_water="0.6", oversized="keep"),
    ]
)


@examples(40)
@given(st.lists(histories(st.one_of(none, one_system, many_systems)), max_size=3), kinds)
def test_sums_are_those_of_replays_at_every_limit_of_the_grid(said, kind):
    found = [figures_of(history, kind) for history in said]
    sums = Sums(figures.grid_distance(kind))
    for each in found:
        assert Figures.from_dict(json.loads(json.dumps(each.to_dict()))) == each
        sums.add(each)
    for point in sums.points():
        if point.limit < kind.least_limit:
            continue
        rows = [recall_of(history, replace(kind, limit=point.limit)) for history in said]
        assert point.held == sum(row.held for row in rows)
        assert point.lossless == sum(row.nothing_lost for row in rows)
        assert point.prompts == sum(row.prompt_tokens for row in rows)
    assert sums.everything == sum(recall_of(history, None).prompt_tokens for history in said)
    assert sums.recalls == sum(recall_of(history, kind).recalls for history in said)


def test_the_policy_in_force_is_told_beside_them():
    said = [AiMessage("ab12"), AiMessage("well"), AiMessage("ab12")]
    history = history_from(said, [9, 9, 9], 3, range(1, 4))
    found = figures_of(history, TokenWindow(1), MessageWindow(1), [(3, 1)])
    assert (found.recalls, found.today_held, found.today_prompts) == (1, 0, 24)
    assert figures_of(history, TokenWindow(1)).today_held is None
    sums = Sums(250)
    sums.add(found)
    assert (sums.today_held, sums.today_lossless, sums.today_calls) == (0, 0, 3)


def test_a_very_long_history_is_replayed_at_some_limits_only(monkeypatch):
    monkeypatch.setattr(figures, "MOST_SUMMED", 100)
    history = history_from([AiMessage("ab12")] * 20, [250] * 20, 3, range(1, 21))
    found = figures_of(history, TokenWindow(1))
    sums = Sums(250)
    sums.add(found)
    assert found.is_coarse
    assert sums.is_coarse
    assert sums.points()[-1].prompts == found.everything
    assert len(found.prompts) == 6
    assert found.recalls == sum(found.held.values()) == 19


@pytest.mark.parametrize("kind", [MessageWindow(1), TokenWindow(1)])
def test_between_the_limits_that_were_replayed_tokens_are_estimated(monkeypatch, kind):
    said = [(UserMessage, AiMessage)[n % 2](f"ab{n}") for n in range(400)]
    history = history_from(said, [250] * 400, 3, range(1, 401))
    monkeypatch.setattr(figures, "MOST_SUMMED", 400 * 12)
    coarse, short = figures_of(history, kind), figures_of(SHORT, kind)
    sums = Sums(coarse.every)
    for each in (short, coarse, short):
        sums.add(each)
    points = [point for point in sums.points() if point.limit >= kind.least_limit]
    for point in points:
        exact = prompts_at(history, kind, point.limit)
        others = 2 * prompts_at(SHORT, kind, point.limit)
        assert abs(point.prompts - others - exact) <= 0.05 * exact + 1
        if point.limit // coarse.every in coarse.prompts:
            assert point.prompts == exact + others
    assert coarse.is_coarse > short.is_coarse
    assert points[-1].prompts == sums.everything


def prompts_at(history, kind, limit: int) -> int:
    return recall_of(history, replace(kind, limit=limit)).prompt_tokens


def test_the_smallest_limit_is_the_one_from_which_every_larger_one_holds():
    points = [
        LimitPoint(1, 9, 0, 0),
        LimitPoint(2, 5, 0, 0),
        LimitPoint(3, 9, 0, 0),
        LimitPoint(4, 10, 0, 0),
    ]
    assert smallest(points, 10, 0.9) == points[2]
    assert smallest(points, 10, 1.0) == points[3]
    assert smallest(points[:3], 10, 1.0) is None
    assert smallest([], 0, 0.9) is None


def test_figures_hold_no_word_of_a_message():
    history = history_from([AiMessage("secret-12"), AiMessage("secret-12")], [9, 9], 3, [1, 2])
    assert history.entries[0].type is MessageType.AI
    assert "secret" not in json.dumps(figures_of(history, TokenWindow(1)).to_dict())
