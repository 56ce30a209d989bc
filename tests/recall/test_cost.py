"""The model of cost, and the fast tallies against a replay by the rule of eviction."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from itertools import accumulate, cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidValue,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.known_models import known_model, smallest_prompt
from chatmemory.messages.estimators import estimator_for
from chatmemory.recall.comparison import replay
from chatmemory.recall.cost import (
    NO_BOUNDS,
    Bill,
    CacheRules,
    Call,
    Prices,
    Sizes,
    bill_of,
    providers,
    rules_of,
)
from chatmemory.recall.frontier import (
    RESULTS_KEPT,
    Sums,
    figures_of,
    limits_of,
    needed_limits,
    tried_of_kind,
)
from chatmemory.recall.history import history_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.tallies import Tallies, Tally
from chatmemory.windows.window import Entry
from tests.recall.test_loads import Halving, Surcharged
from tests.recall.test_recall import first, histories, many_systems, none, one_system

from ..properties import examples

kinds = st.one_of(
    st.builds(MessageWindow, st.just(1), always_keep_system_message_first=first),
    st.builds(TokenWindow, st.just(1), fixed_overhead=st.integers(0, 4)),
    st.builds(TokenWindow, st.just(9), oversized=st.sampled_from(["keep", "reject"])),
    st.builds(TokenWindow, st.just(9), auto_recover_orphaned_tool_messages=st.just(True)),
    st.builds(Surcharged, st.just(1)),
    st.builds(Halving, st.just(1)),
)
gaps = st.lists(st.integers(0, 30), min_size=1, max_size=3)
rules = st.sampled_from([CacheRules(), CacheRules(4, 8), CacheRules(1, 3, 10)])


def slowly(history, policy, rules) -> Tally:
    found = replay(history, policy)
    bill = found.prompts.bill(rules)
    kinds = (IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED)
    sums = bill.tokens, bill.read, bill.written
    return Tally(found.held, *map(found.count_of, kinds), *sums, found.by_index)


@examples(100)
@given(histories(st.one_of(none, one_system, one_system, many_systems)), kinds, rules, gaps)
def test_tallies_equal_those_of_a_replay(history, kind, rules, gaps):
    history = replace(history, times=[*islice(accumulate(cycle(gaps)), len(history))])
    tallies = Tallies(history, kind, rules)
    assert tallies.of(None) == slowly(history, None, rules)
    for variant in tried_of_kind(kind).variants:
        for limit in {*range(variant.least_limit, 12), variant.least_limit, 20, 31}:
            if limit >= variant.least_limit:
                policy = replace(variant, limit=limit)
                assert tallies.of(policy) == slowly(history, policy, rules), policy


def test_a_prompt_is_read_in_steps_from_a_length_on_and_while_the_cache_lives():
    rules = CacheRules(step=128, least=1_024, life=300)
    reads = [
        (Call(0, 2_000, 1_023), 0),
        (Call(0, 2_000, 1_024), 1_024),
        (Call(0, 2_000, 1_300, 300), 1_280),
        (Call(0, 2_000, 1_300, 301), 0),
        (Call(0, 2_000, 1_300, None), 1_280),
    ]
    assert [bill_of([call], rules).read for call, _ in reads] == [read for _, read in reads]
    assert bill_of([call for call, _ in reads], rules).read == sum(read for _, read in reads)
    bill = bill_of([Call(0, 1_000, 0), Call(1, 1_100, 1_000), Call(2, 1_400, 1_100)], rules)
    assert bill == Bill(calls=3, tokens=3_500, read=1_024, written=1_100 + 376)
    assert bill.fresh == 1_000


def test_the_bills_up_to_each_call_add_one_call_each():
    rules = CacheRules(step=128, least=1_024, life=300)
    calls = [Call(0, 1_000, 0), Call(1, 1_100, 1_000), Call(2, 1_400, 1_100, 10.0)]
    assert list(Sizes.of(calls).bills(rules)) == [bill_of(calls[:n], rules) for n in (1, 2, 3)]


def test_prices_weigh_what_is_fresh_read_and_written():
    bill, everything = Bill(2, 1_000, 400, 600), Bill(2, 2_000, 1_000, 1_000)
    with_cache = Prices(Decimal("2.50"), Decimal("0.25"))
    assert with_cache.weight(bill) == 600 + 40
    assert with_cache.relative(bill, everything) == pytest.approx(640 / 1_100)
    assert with_cache.cost(bill) == Decimal(640) * Decimal("2.50") / 1_000_000
    written = replace(with_cache, write=Decimal("3.125"))
    assert written.weight(bill) == 600 * Decimal("1.25") + 40
    assert (with_cache.priced, Prices(Decimal(2)).priced) == ("cache", "tokens")
    assert Prices(Decimal(2)).relative(bill, everything) == 0.5
    assert Prices().cost(bill) is None
    assert Prices().relative(Bill(), Bill()) is None


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ((Decimal(-1),), "the input price must be 0 or more"),
        ((None, Decimal(1)), "a cached price needs an input price"),
        ((Decimal(0), Decimal(1)), "a cached price needs an input price"),
        ((Decimal(1), None, Decimal(1)), "needs a cached price beside it"),
    ],
)
def test_prices_that_say_nothing_are_refused(prices, words):
    with pytest.raises(InvalidValue, match=words):
        Prices(*prices)


def test_each_provider_has_its_rules_with_source_and_date():
    for name, provider in providers().items():
        assert rules_of(name) == provider.rules
        told = {each for each in ("step", "least", "life") if getattr(provider.rules, each)}
        told -= {"step"} if provider.rules.step == 1 else set()
        assert told | {"cached"} <= provider.read.keys()
        assert all(address.startswith("https://") for address in provider.read.values())
        assert provider.as_of.year >= 2026
        assert 0 < provider.cached < 1 <= provider.write
    assert rules_of("") == CacheRules()
    with pytest.raises(InvalidValue, match="openai or anthropic"):
        rules_of("nobody")


def test_a_model_has_its_own_context_least_length_and_shares():
    assert [each and each.prompt for each in map(known_model, ("gpt-4o", "o3", "", None))] == [
        128_000,
        200_000,
        None,
        None,
    ]
    assert smallest_prompt(["gpt-4o", "claude-opus-4-6"]) == 128_000
    assert smallest_prompt(["gpt-4o", "of-my-own"]) is smallest_prompt([]) is None
    openai, anthropic = providers()["openai"], providers()["anthropic"]
    assert openai.for_model("gpt-4o").cached == Decimal("0.5")
    assert openai.for_model("of-my-own") == openai.for_model(None) == openai
    assert rules_of("anthropic", "claude-opus-4-6").least == 4_096
    assert rules_of("anthropic", "claude-sonnet-4-5") == anthropic.rules
    assert providers()["anthropic-1h"].for_model("claude-opus-4-6").write == 2


def test_limits_and_options_that_are_tried():
    assert limits_of("messages", 12) == [2, 3, 4, 5, 6, 8, 10]
    assert limits_of("tokens", 1_200, also=[777, 5_000])[-4:] == [600, 777, 800, 1_000]
    assert limits_of("tokens", 90) == []
    variants = tried_of_kind(TokenWindow(50, low_water="0.7")).variants
    assert [(str(each.low_water), each.snap_to_user) for each in variants[:3]] == [
        ("0.7", False),
        ("1", False),
        ("0.8", False),
    ]
    assert len(variants) == 10
    assert variants[-1] == replace(variants[0], clear_tool_results=RESULTS_KEPT)
    assert len(tried_of_kind(TokenWindow(50), clears_results=False).variants) == 8
    assert tried_of_kind(TokenWindow(50, clear_tool_results=1)).variants[-1].whole_results == 1
    assert len(tried_of_kind(Halving(1)).variants) == 2


def agent(results: int) -> list:
    """An agent's history whose results are long, and whose facts its answers repeat."""
    said = [SystemMessage("Be brief.")]
    for n in range(results):
        call = AiMessage(None, (ToolExecutionRequest(str(n), "find", "{}"),))
        result = ToolExecutionResultMessage(str(n), "find", f"A-{n}182 " + "was seen. " * 40)
        said += [UserMessage("Where?"), call, result, AiMessage(f"A-{n}182 is in Porto.")]
    return [*said, AiMessage(f"A-0182 and A-{results - 1}182.")]


def test_clearing_is_tried_where_there_are_old_results():
    tried = tried_of_kind(TokenWindow(1))
    number = len(tried.variants) - 1
    long, short = (history_of(agent(n), estimator_for("gpt-4o")) for n in (8, RESULTS_KEPT))
    found = figures_of(long, tried)
    assert found.clears
    for limit, tally in found.points[number].items():
        policy = TokenWindow(limit, clear_tool_results=RESULTS_KEPT)
        assert tally == slowly(long, policy, NO_BOUNDS), policy
    sliding = found.points[0]
    assert any(tally != sliding[limit] for limit, tally in found.points[number].items())
    nothing = figures_of(short, tried)
    assert not nothing.clears
    for limit, tally in nothing.points[number].items():
        assert tally == nothing.points[0][limit]
    assert limits_that_clear(Sums(tried, [found, nothing])) == {*found.points[number]}
    assert limits_that_clear(Sums(tried, [nothing])) == set()


def limits_that_clear(sums: Sums) -> set[int]:
    return {each.policy.limit for each in sums.points() if each.policy.whole_results}


def test_a_history_that_takes_long_to_clear_counts_as_not_cleared(monkeypatch):
    history, tried = history_of(agent(8), estimator_for("gpt-4o")), tried_of_kind(TokenWindow(1))
    monkeypatch.setattr(import_module("chatmemory.recall.frontier"), "MOST_CLEARED", 100)
    assert not figures_of(history, tried).clears


def test_the_limit_that_each_turn_needs_counts_the_system_message_before_it():
    system, user = SystemMessage("brief"), UserMessage("hello")
    said = [
        *((AiMessage("hi"), 4), (system, 5), (user, 1), (AiMessage("yes"), 2)),
        *((system, 6), (AiMessage("more"), 3), (user, 7)),
    ]
    history = [Entry.of(message, tokens) for message, tokens in said]
    assert list(needed_limits(history, TokenWindow(9))) == [7, 0, 9, 11, 0, 15, 16]
    assert list(needed_limits(history, MessageWindow(9))) == [1, 0, 2, 3, 0, 4, 2]
