"""Advice in words."""

from __future__ import annotations

from chatmemory import MessageWindow, TokenWindow
from chatmemory.advice import Goals, advise, words
from chatmemory.advice.options import is_of_first_half
from chatmemory.advice.words import policy_long, policy_short
from chatmemory.recall.tallies import Tally
from tests.advice.fleets import PRICES, all_hold, conversation, window


def test_a_limit_that_clears_tool_results_is_named_so():
    policy = TokenWindow(2_000, clear_tool_results=3)
    assert policy_short(policy) == "2,000 tokens, clearing tool results but the newest 3"
    assert (
        policy_long(policy)
        == "Set the limit to 2,000 tokens, clearing tool results but the newest 3"
    )


def test_blocks_and_what_only_measures_are_named():
    blocks = TokenWindow(80_000, low_water="0.7")
    assert policy_short(blocks) == "80,000 tokens, trimmed to 70 % when full"
    assert policy_long(blocks) == "Set the limit to 80,000 tokens, trimmed to 70 % when full"
    assert (
        policy_short(TokenWindow(500, low_water="0.5")) == "500 tokens, trimmed to 50 % when full"
    )
    assert policy_long(MessageWindow(20).metering()) == "Send everything"


def test_the_effect_is_written_as_a_change():
    advice = advise([all_hold("a", [1_400, 1_430, 1_500], 1_430)])
    assert words.headline(advice) == "Send everything"
    assert words.effect(advice) == "facts held: 20 → 20 of 20; relative tokens: 1.43 → 1.00"
    assert words.cost_of_today(advice) == "sends 43 % more tokens than sending everything"
    assert (
        words.dominated_words(advice)
        == "3 limits are not offered: another option costs less and holds no fewer facts."
    )


def test_what_was_measured_is_said_with_what_was_left_out():
    fleet = [all_hold(f"c{n}", [700, 800, 850], 800) for n in range(12)]
    huge = all_hold("huge", [990, 2_000, 3_000], 2_000, size=40_000, need=100)
    short = all_hold("short", [700, 800, 850], calls=2)
    told = words.measured_words(advise([*fleet, huge, short], prices=PRICES).measured)
    assert told == (
        "Measured on 12 conversations, each with the same weight, 96 model calls, at prices of "
        "your own. Conversations not counted: 1 with fewer than 3 model calls; 1 far larger than "
        "the others (huge)."
    )


def test_where_only_the_newest_messages_were_measured_the_scope_says_so():
    one = all_hold("a", [700, 800, 850], 800)._replace(said=44)
    whole = all_hold("b", [700, 800, 850], 800)._replace(said=20)
    told = words.measured_words(advise([one], prices=PRICES).measured, is_one=True)
    assert told.startswith("Measured on the newest 20 of its 44 messages, 8 model calls, at ")
    told = words.measured_words(advise([one], prices=PRICES).measured)
    assert told.startswith("Measured on the newest 20 of the 44 messages of 1 conversation, 8 ")
    several = advise([one, whole], prices=PRICES).measured
    assert (several.messages, several.said, several.in_part) == (40, 64, 1)
    assert words.measured_words(several).endswith(
        "at prices of your own. Of 1 long conversation, only the newest messages were measured: "
        "40 of all 64 messages."
    )


def test_a_change_says_that_it_saves_in_both_halves():
    fleet = [all_hold(f"c{n}", [700, 800, 850], 800) for n in range(12)]
    said = words.why(advise(fleet))
    assert "It also saves in each half of the conversations: relative tokens 0.70 and 0.70." in said


def test_where_nothing_fits_the_window_that_holds_most_is_named():
    losing = {(0, 4): Tally(10, tokens=300), (0, 8): Tally(18, tokens=600)}
    advice = advise([conversation("a", losing)], Goals(context=150))
    assert words.why(advice) == (
        "A limit of 8 messages holds the most facts: 18 of 20. The longest prompt has 200 tokens, "
        "more than the model’s context window of 150."
    )


def test_a_limit_without_room_for_the_largest_turn_is_said():
    advice = advise([all_hold("a", [300, 500, 600], 500, turn=12)])
    assert words.headline(advice) == "Set the limit to 16 messages"
    assert words.why(advice).startswith(
        "The largest turn needs 12 messages with the system message, and today’s limit is 8."
    )


def test_why_nothing_is_advised_is_said():
    assert words.headline(advise([])) == "No advice: there are no conversations"
    short = all_hold("short", [700, 800, 850], calls=2)
    assert words.headline(advise([short])) == "No advice: fewer than three model calls"


def test_the_cheapest_limit_is_named_but_not_advised_if_nothing_was_needed():
    points = {(0, 8): Tally(tokens=400)}
    advice = advise([conversation("a", points, Tally(tokens=1_000), window(16), recalls=0)])
    assert words.headline(advice) == "Cheapest limit: 8 messages"
    assert "The measurement does not show whether answers need earlier messages." in words.why(
        advice
    )
    whole = advise([conversation("a", {}, Tally(tokens=1_400), window(8), recalls=0)])
    assert words.headline(whole) == "Send everything"
    assert "talk before" not in words.why(whole)


def test_a_window_that_saves_too_little_is_named_beside_everything():
    advice = advise([all_hold("a", [980, 990, 1_500], 1_430)])
    assert words.headline(advice) == "Send everything"
    assert words.why(advice) == (
        "No limit that holds enough facts costs 10 % less than sending everything. A limit "
        "holds enough facts if it holds 95 % of them, and no fewer than today’s. A limit of "
        "4 messages holds as many facts "
        "(relative tokens 0.98), but saves less than 10 %."
    )


def test_a_window_that_saves_in_one_half_only_is_named_so():
    first = next(f"c{n}" for n in range(9) if is_of_first_half(f"c{n}"))
    second = next(f"c{n}" for n in range(9) if not is_of_first_half(f"c{n}"))
    both = [all_hold(first, [500, 990, 990]), all_hold(second, [950, 990, 990])]
    assert words.why(advise(both, prices=PRICES)).endswith(
        "holds as many facts (relative cost 0.73), but saves less than 10 % in one half of the "
        "conversations."
    )


def test_no_window_is_named_that_loses_facts_or_costs_as_much():
    lossless = advise([all_hold("a", [1_000, 1_100, 1_500], 1_430)])
    assert words.why(lossless).endswith(
        "costs 10 % less than sending everything. A limit holds enough "
        "facts if it holds 95 % of them, and no fewer than today’s."
    )
