"""Advice by figures whose cost in each half of the conversations is known."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from chatmemory import MessageWindow
from chatmemory.recall.advice import AdviceReason, Chooser, Goals, why_words
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


def test_the_sentence_names_what_was_compared_and_what_is_repeated():
    told = replace(figures(760, 700), points={0: {4: Tally(held=2, call_repeated=3, tokens=700)}})
    goals = Goals()

    def why(prices: Prices) -> str:
        chooser = Chooser(TRIED, [told], prices, goals)
        return why_words(chooser.advice(), goals, 1, prices)

    assert why(Prices()) == (
        "it holds 2 facts for 0.70 of the tokens of everything; messages that repeat what left: 3; "
        "with a cache it may cost more than everything: give the cached price; from 1 conversation"
    )
    priced = why(Prices(Decimal(2), Decimal(1)))
    assert priced.startswith("it holds 2 facts for 0.70 of the cost of everything; messages")
    assert "cached price" not in priced


def test_the_sentence_names_the_window_that_holds_most_of_those_that_fit():
    goals = Goals(share=0.99, context=90)
    most = replace(figures(760, 700), points={0: {4: Tally(held=1, tokens=700)}})
    advice = Chooser(TRIED, [most], Prices(), goals).advice()
    assert advice.why is AdviceReason.NOTHING_HOLDS
    assert "; message_window:4 holds most of those (1)" in why_words(advice, goals, 1)
