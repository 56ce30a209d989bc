"""The rules of advice, each by an independent statement over figures that are made at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatmemory import TokenWindow
from chatmemory.advice import (
    Advice,
    DecidedBy,
    Goals,
    LeftOut,
    Measured,
    Option,
    Verdict,
    advise,
    advise_groups,
)
from chatmemory.advice.options import is_of_first_half
from chatmemory.recall.cost import Prices
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import Policy
from tests.advice.fleets import LIMITS, PRICES, TOKENS, all_hold, conversation, window

PLACES = [(variant, limit) for variant in (0, 1) for limit in LIMITS]


@st.composite
def tallies(draw: st.DrawFn, recalls: int) -> Tally:
    tokens = draw(st.integers(100, 1_500))
    read = draw(st.integers(0, tokens))
    again = draw(st.sampled_from([0, 0, 0, 1, 2]))
    return Tally(draw(st.integers(0, recalls)), again, 0, tokens, read, tokens - read)


@st.composite
def conversations(draw: st.DrawFn, number: int, has_today: bool) -> Measured:
    recalls = draw(st.sampled_from([0, 3, 12, 40]))
    load = draw(st.sampled_from([8, 12, 40]))
    points = {place: draw(tallies(recalls)) for place in PLACES if place[1] < load}
    today = draw(tallies(recalls)) if has_today else None
    if has_today and load > 8:
        today = points[0, 8]
    elif has_today:
        today = Tally(recalls, tokens=1_000)
    turn = draw(st.sampled_from([2, 2, 6]))
    return conversation(
        f"c{number}",
        points,
        today,
        window(8) if has_today else None,
        recalls=recalls,
        load=load,
        turn=turn,
    )


@st.composite
def fleets(draw: st.DrawFn) -> list[Measured]:
    has_today = draw(st.booleans())
    return [draw(conversations(n, has_today)) for n in range(draw(st.integers(1, 4)))]


# An independent statement: everything is computed from single tallies, conversation by conversation


def cost_of(tally: Tally, prices: Prices) -> float:
    cached, write = (1, 1) if prices.cached is None else (float(prices.cached), float(prices.write))
    return tally.tokens - tally.read - tally.written + cached * tally.read + write * tally.written


def tally_at(each: Measured, policy: Policy | None) -> Tally | None:
    if policy is None:
        return each.figures.everything
    variant = int(policy.low_water != 1)
    if policy.limit >= each.figures.load:
        return each.figures.everything
    return each.figures.points[variant].get(policy.limit)


def effect(
    counted: Sequence[Measured], found: Sequence[Tally], prices: Prices
) -> tuple[float, float, int]:
    """Return the mean share that is held, the mean relative cost, and what is repeated."""
    shares = [
        tally.held / each.figures.recalls if each.figures.recalls else 1.0
        for each, tally in zip(counted, found, strict=True)
    ]
    costs = [
        cost_of(tally, prices) / cost_of(each.figures.everything, prices)
        for each, tally in zip(counted, found, strict=True)
    ]
    repeated = sum(tally.user_repeated + tally.call_repeated for tally in found)
    return sum(shares) / len(shares), sum(costs) / len(costs), repeated


def counted_of(fleet: Sequence[Measured], advice: Advice) -> list[Measured]:
    out = {id for ids in advice.measured.left_out.values() for id in ids}
    return [each for each in fleet if each.id not in out]


def all_options(
    counted: Sequence[Measured], prices: Prices
) -> dict[Policy | None, tuple[float, float, int]]:
    """Return the effects of all options: windows with room for the largest turn, and everything."""
    turn = max(each.figures.turn for each in counted)
    policies: list[Policy | None] = [None]
    policies += [window(limit, blocks=bool(v)) for v, limit in PLACES if limit >= turn]
    found: dict[Policy | None, tuple[float, float, int]] = {}
    for policy in policies:
        known = [tally_at(each, policy) for each in counted]
        if policy is None or any(policy.limit < each.figures.load for each in counted):
            found[policy] = effect(counted, known, prices)
    return found


def is_dominated(one: tuple[float, float, int], others: Sequence[tuple[float, float, int]]) -> bool:
    share, cost, repeated = one
    return any(s >= share - 1e-9 and r <= repeated and c < cost - 1e-9 for s, c, r in others)


@settings(max_examples=150, deadline=None)
@given(fleets(), st.sampled_from([TOKENS, PRICES]))
def test_no_dominated_option_is_a_pick_or_an_alternative(
    fleet: list[Measured], prices: Prices
) -> None:
    advice = advise(fleet, prices=prices)
    if advice.verdict is Verdict.TOO_FEW:
        return
    counted = counted_of(fleet, advice)
    options = all_options(counted, prices)
    for each in advice.others:
        assert not is_dominated(options[each.policy], list(options.values()))
    if advice.is_change and advice.pick.policy is not None:
        assert not is_dominated(options[advice.pick.policy], list(options.values()))
    assert len(advice.others) <= 3


@settings(max_examples=150, deadline=None)
@given(fleets(), st.sampled_from([TOKENS, PRICES]))
def test_the_pick_is_the_cheapest_that_qualifies_else_everything(
    fleet: list[Measured], prices: Prices
) -> None:
    advice = advise(fleet, prices=prices)
    if advice.verdict is Verdict.TOO_FEW:
        return
    counted = counted_of(fleet, advice)
    recalls = sum(each.figures.recalls for each in counted)
    today = None
    if counted[0].figures.today:
        today = effect(counted, [each.figures.today for each in counted], prices)
        held_today = sum(each.figures.today.held for each in counted)
    firsts = [each for each in counted if is_of_first_half(each.id)]
    seconds = [each for each in counted if not is_of_first_half(each.id)]
    qualifying = []
    for policy, (share, cost, repeated) in all_options(counted, prices).items():
        if policy is None:
            continue
        held = sum(tally_at(each, policy).held for each in counted)
        in_halves = [
            effect(half, [tally_at(each, policy) for each in half], prices)[1]
            for half in (firsts, seconds)
            if half
        ]
        is_lossless = held == recalls and not repeated
        enough = share >= 0.95 - 1e-9 if recalls >= 10 or not recalls else is_lossless
        if recalls and not held:
            continue
        if today and not 0 < recalls < 10:
            enough = enough and share >= today[0] - 1e-9 and repeated <= today[2]
            enough = enough and held >= held_today
        if enough and all(each <= 0.9 + 1e-9 for each in in_halves):
            qualifying.append((cost, policy))
    best = min((cost for cost, _ in qualifying), default=None)
    if advice.verdict is Verdict.KEEP:
        least = best if best is not None else 1.0
        assert today is not None
        is_near = least > 0.9 * today[1] - 1e-9 or today[1] <= least + 1e-9
        assert is_near or 0 < recalls < 10
    elif best is None:
        assert advice.pick.policy is None
    else:
        assert advice.pick.cost == pytest.approx(best)


@settings(max_examples=100, deadline=None)
@given(fleets(), st.sampled_from([TOKENS, PRICES]))
def test_costs_and_shares_are_means_in_which_each_conversation_counts_alike(
    fleet: list[Measured], prices: Prices
) -> None:
    advice = advise(fleet, prices=prices)
    if advice.verdict is Verdict.TOO_FEW:
        return
    counted = counted_of(fleet, advice)
    for option in filter(None, (*advice.options, advice.everything)):
        known = [tally_at(each, option.policy) for each in counted]
        share, cost, repeated = effect(counted, known, prices)
        assert (option.share, option.cost) == (pytest.approx(share), pytest.approx(cost))
        assert option.repeated == repeated
        assert option.held == sum(tally.held for tally in known)
        assert option.from_conversations == len(counted) == advice.measured.conversations


# Single rules


def verdict(*fleet: Measured, goals: Goals | None = None) -> tuple[Verdict, str | None]:
    advice = advise(fleet, goals or Goals(), TOKENS)
    return advice.verdict, advice.recommended


def test_what_costs_more_than_everything_is_not_kept() -> None:
    assert verdict(all_hold("a", [1_400, 1_430, 1_500], 1_430)) == (
        Verdict.SEND_EVERYTHING,
        "everything",
    )


def test_what_is_nearly_as_cheap_as_the_best_is_kept() -> None:
    assert verdict(all_hold("a", [760, 800, 820], 800)) == (Verdict.KEEP, "message_window:8")
    assert verdict(all_hold("a", [700, 800, 820], 800)) == (Verdict.CHANGE, "message_window:4")


def test_todays_that_loses_nothing_and_costs_no_more_than_everything_is_kept() -> None:
    assert verdict(all_hold("a", [990, 950, 995], 950)) == (Verdict.KEEP, "message_window:8")


def test_a_window_must_save_a_tenth_in_both_halves() -> None:
    first = next(f"c{n}" for n in range(9) if is_of_first_half(f"c{n}"))
    second = next(f"c{n}" for n in range(9) if not is_of_first_half(f"c{n}"))
    both = [all_hold(first, [500, 990, 990]), all_hold(second, [800, 990, 990])]
    advice = advise(both, prices=TOKENS)
    assert (advice.verdict, advice.recommended) == (Verdict.CHANGE, "message_window:4")
    assert advice.checked == (0.5, 0.8)
    one = [all_hold(first, [500, 990, 990]), all_hold(second, [950, 990, 990])]
    assert verdict(*one) == (Verdict.SEND_EVERYTHING, "everything")


def test_a_limit_smaller_than_the_largest_turn_needs_is_no_option() -> None:
    fleet = all_hold("a", [300, 500, 600], turn=6)
    assert verdict(fleet) == (Verdict.CHANGE, "message_window:8")
    assert {each.policy.limit for each in advise([fleet]).options} == {8, 16}


def test_a_limit_that_holds_nothing_is_no_option() -> None:
    points = {(0, 4): Tally(0, tokens=100), (0, 8): Tally(20, tokens=600)}
    advice = advise([conversation("a", points)])
    assert [each.policy.limit for each in advice.options] == [8]


def test_without_needed_facts_cost_decides_alone() -> None:
    points = {(0, 4): Tally(tokens=300), (0, 8): Tally(tokens=600)}
    none = conversation("a", points, Tally(tokens=600), window(8), recalls=0)
    assert verdict(none) == (Verdict.CHEAPEST, "message_window:4")


def test_with_few_facts_only_what_loses_nothing_and_costs_less_is_advised() -> None:
    points = {(0, 4): Tally(6, tokens=300), (0, 8): Tally(6, tokens=600)}
    points |= {(0, 16): Tally(7, tokens=800)}
    cheap = conversation("a", points, points[0, 8], window(8), recalls=7)
    advice = advise([cheap], prices=TOKENS)
    assert (advice.verdict, advice.is_few) == (Verdict.KEEP, True)
    dear = conversation("a", points, Tally(6, tokens=1_430), window(8), recalls=7)
    assert verdict(dear) == (Verdict.CHANGE, "message_window:16")


def test_clients_that_decide_are_told_the_limit_but_change_it_themselves() -> None:
    own = all_hold("a", [600, 700, 800], decided_by=DecidedBy.CLIENT)
    assert verdict(own) == (Verdict.CLIENT, "message_window:4")
    assert not advise([own]).is_change
    both = advise([own, all_hold("b", [600, 700, 800], 800)])
    assert both.measured.left_out == {LeftOut.CLIENT: ["a"]}


def test_a_refused_window_comes_before_its_limit() -> None:
    ill = all_hold("a", [600, 700, 800], 800, refused="OpenAI")
    assert verdict(ill) == (Verdict.REFUSED, None)
    assert advise([ill], prices=TOKENS).others == ()


def test_under_three_calls_or_unread_there_is_no_advice() -> None:
    assert verdict(all_hold("a", [600, 700, 800], calls=2)) == (Verdict.TOO_FEW, None)
    advice = advise([Measured("a")])
    assert (advice.verdict, advice.measured.left_out) == (
        Verdict.TOO_FEW,
        {LeftOut.UNREAD: ["a"]},
    )


def test_everything_must_fit_the_model() -> None:
    goals = Goals(context=150)
    losing = {(0, 4): Tally(10, tokens=300), (0, 8): Tally(18, tokens=600)}
    assert verdict(conversation("a", losing), goals=goals) == (Verdict.DOES_NOT_FIT, None)
    assert verdict(all_hold("a", [950, 960, 980]), goals=goals)[1] == "message_window:4"


def test_one_conversation_far_larger_than_the_others_stands_apart() -> None:
    fleet = [all_hold(f"c{n}", [700, 800, 850], 800) for n in range(15)]
    huge = all_hold("huge", [990, 2_000, 3_000], 2_000, size=40_000, need=100)
    alone, beside = advise(fleet), advise([*fleet, huge])
    assert beside.measured.left_out == {LeftOut.OUTLIER: ["huge"]}
    assert (alone.verdict, alone.recommended) == (beside.verdict, beside.recommended)
    assert advise([huge]).measured.conversations == 1


def test_groups_that_differ_give_no_advice_for_all() -> None:
    cheap = [all_hold(f"a{n}", [600, 800, 850], 800) for n in range(4)]
    dear = [all_hold(f"b{n}", [1_200, 1_300, 1_400], 1_300) for n in range(4)]
    cheap = [each._replace(group="a") for each in cheap]
    dear = [each._replace(group="b") for each in dear]
    together, each = advise_groups([*cheap, *dear])
    assert advise([*cheap, *dear]) == together
    assert (together.verdict, together.pick) == (Verdict.GROUPS_DIFFER, None)
    assert each["a"].recommended == "message_window:4"
    assert each["b"].recommended == "everything"
    others = [each._replace(id=f"{each.id}c", group="c") for each in cheap]
    same, _ = advise_groups([*cheap, *others])
    assert same.recommended == "message_window:4"


def test_the_limit_that_keeps_a_fact_is_measured_and_may_be_dominated() -> None:
    fleet = [all_hold("a", [1_400, 1_430, 1_500], 1_430)]
    advice = advise(fleet)
    keeping = advice.at(window(16))
    assert isinstance(keeping, Option)
    assert keeping.cost == 1.5
    assert advice.is_dominated(keeping)
    assert advice.better_than(keeping) == advice.pick == advice.everything
    assert advice.better_than(replace(keeping, cost=0.1)) is None
    assert replace(advice, pick=None).better_than(replace(keeping, cost=1.6)) == advice.everything


def test_a_user_who_repeats_anything_can_be_ruled_out() -> None:
    points = {(0, 4): Tally(20, 1, tokens=500), (0, 8): Tally(20, tokens=700)}
    fleet = conversation("a", points)
    assert verdict(fleet)[1] == "message_window:4"
    assert verdict(fleet, goals=Goals(spares_users=True))[1] == "message_window:8"


def test_conversations_that_needed_no_fact_are_named_apart() -> None:
    with_facts = all_hold("a", [600, 700, 800], 800)
    without = conversation("b", {(0, 8): Tally(tokens=10)}, Tally(tokens=10), recalls=0)
    advice = advise([with_facts, without])
    assert advice.measured.left_out == {LeftOut.NO_FACTS: ["b"]}
    assert advice.today.cost == 0.8


def test_limits_in_another_unit_are_named_apart() -> None:
    tokens = all_hold("b", [600, 700, 800], 800)._replace(policy=TokenWindow(500))
    advice = advise([all_hold("a", [600, 700, 800], 800), tokens])
    assert advice.measured.left_out == {LeftOut.OTHER_UNIT: ["b"]}


def test_no_less_is_held_than_today() -> None:
    points = {(0, 4): Tally(39, tokens=300), (0, 8): Tally(40, tokens=800)}
    fleet = conversation("a", points, points[0, 8], window(8), recalls=40)
    assert verdict(fleet) == (Verdict.KEEP, "message_window:8")
    assert advise([fleet]).others[0].text == "message_window:4"


def test_dominated_options_are_counted_and_not_named() -> None:
    advice = advise([all_hold("a", [700, 800, 1_200], 800)])
    assert (advice.dominated, advice.others) == (2, ())
