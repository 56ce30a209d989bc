"""Advice by figures whose cost in each half of the conversations is known."""

from __future__ import annotations

from dataclasses import replace

from chatmemory import MessageWindow
from chatmemory.recall.advice import AdviceReason, Chooser, Goals
from chatmemory.recall.cost import NO_BOUNDS, Prices
from chatmemory.recall.frontier import Figures, tried_policies
from chatmemory.recall.tallies import Tally

IN_FORCE, OTHER = MessageWindow(4), MessageWindow(5, low_water="0.5")
TRIED = tried_policies([IN_FORCE, OTHER], NO_BOUNDS)


def figures(today: int, other: int) -> Figures:
    """Return the figures of a conversation whose prompts take 1,000 tokens without a limit, and
    this many under the policy in force and the other one. Each holds all facts.
    """
    tallies = [Tally(held=2, tokens=tokens) for tokens in (1_000, today, other)]
    points = {0: {4: tallies[1]}, 1: {5: tallies[2]}}
    return Figures(8, 2, 4, 100, tallies[0], points, today=tallies[1])


def test_a_policy_that_costs_more_than_todays_is_not_advised():
    """The other one is cheaper in the half by which it is chosen, and dearer in all."""
    chooser = Chooser(TRIED, [figures(760, 700), figures(740, 820)], Prices())
    assert (chooser.today.cost, chooser.cost_of(OTHER)) == (0.75, 0.76)
    advice = chooser.as_today()
    assert (advice.why, advice.pick) == (AdviceReason.NOTHING_CHEAPER, None)


def test_a_policy_under_which_users_repeat_themselves_is_no_remedy_for_that():
    """The other one is cheaper and holds all facts, but a user has to repeat one."""
    cheap = Tally(held=2, user_repeated=1, tokens=500)
    told = replace(figures(900, 500), points={0: {4: Tally(held=2, tokens=800)}, 1: {5: cheap}})
    assert Chooser(TRIED, [told], Prices()).advice().pick.policy == OTHER
    goals = Goals(spares_users=True)
    advice = Chooser(TRIED, [told], Prices(), goals).advice()
    assert (advice.why, advice.pick.policy) == (AdviceReason.SAVES, IN_FORCE)


def test_a_policy_that_costs_less_than_todays_is_advised():
    chooser = Chooser(TRIED, [figures(760, 700), figures(740, 720)], Prices())
    assert chooser.as_today().pick.policy == OTHER
