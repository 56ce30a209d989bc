"""Recall, its curve and the figures of a lab, against naive replays and real conversations."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import replace
from itertools import combinations_with_replacement

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidValue,
    MessageType,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    TurnWindow,
    UserMessage,
    recall,
    recall_curve,
)
from chatmemory.conf import fact_words
from chatmemory.formats import read_transcripts
from chatmemory.lint import PROVIDERS, refusals_in, verdicts
from chatmemory.lint.linter import turns_of
from chatmemory.messages.estimators import estimator_for
from chatmemory.recall import Recall, recall_of
from chatmemory.recall.comparison import curve_of
from chatmemory.recall.facts import Words, facts_of
from chatmemory.recall.folding import fold
from chatmemory.recall.history import history_from, history_of
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needs import needs
from chatmemory.recall.prompts import Refusals, prompts_of
from chatmemory.windows.window import Window
from tests.recall.test_loads import Halving, Surcharged

from ..properties import examples

TEXTS = [f"{fact} and {other}" for fact in ("ab12", "cd34") for other in ("ef56", "well")]
texts = st.sampled_from([*TEXTS, "nothing"])
calls = st.builds(
    lambda text, count: AiMessage(
        None, [ToolExecutionRequest.of("find", {"key": text}, id=str(n)) for n in range(count)]
    ),
    texts,
    st.integers(1, 2),
)
results = st.builds(lambda text: ToolExecutionResultMessage("1", "find", text), texts)
said = st.one_of(
    st.builds(UserMessage, texts), st.builds(AiMessage, texts), calls, results, results
)
system = st.just(SystemMessage("You know ab12."))
many_systems = st.lists(st.one_of(said, said, said, st.builds(SystemMessage, texts)), max_size=10)
one_system = st.builds(
    lambda first, others: [*first, *others],
    st.lists(system, min_size=1, max_size=1),
    st.lists(st.one_of(said, said, said, system), max_size=10),
)
none = st.lists(said, max_size=10)
first = st.booleans()
oversized = st.sampled_from(["evict", "keep", "reject"])
policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 9), always_keep_system_message_first=first),
    st.builds(
        TokenWindow,
        st.integers(1, 40),
        always_keep_system_message_first=first,
        fixed_overhead=st.integers(0, 4),
    ),
    st.builds(Surcharged, st.integers(1, 40)),
    st.builds(Halving, st.integers(1, 40)),
    st.builds(TurnWindow, st.integers(1, 4), free_system=st.booleans()),
    st.builds(TokenWindow, st.integers(1, 40), free_system=st.just(True)),
    st.builds(MessageWindow, st.integers(1, 9), snap_to_user=st.booleans(), oversized=oversized),
    st.builds(TokenWindow, st.integers(8, 40), low_water=st.just("0.6"), oversized=oversized),
)


@st.composite
def histories(draw, messages):
    chosen = draw(messages)
    tokens = draw(st.lists(st.integers(0, 6), min_size=len(chosen), max_size=len(chosen)))
    return history_from(chosen, tokens, 3, range(1, len(chosen) + 1))


def windows_before(history, policy):
    """The window before each message, by the transitions that memories use."""
    window = Window()
    before = [[]]
    for _ in fold(window, history.entries, policy):
        before.append([entry.key for entry in window])
    return before[: len(history)]


def naive_recalls(history, policy):
    """Whether a message in the window mentions each fact that was said before."""
    for position, window in enumerate(windows_before(history, policy)):
        if history.entries[position].type is MessageType.AI:
            known = set().union(*map(history.mentions, _told_before(history, position)))
            seen = set().union(*map(history.mentions, window))
            facts = history.read[position].facts
            own = facts.own.keys() - facts.pairs
            yield from ((position, fact, fact in seen) for fact in own & known)


def _told_before(history, position):
    """The positions of earlier messages of users and tools."""
    told = MessageType.USER, MessageType.TOOL_EXECUTION_RESULT
    return [n for n in range(position) if history.read[n].facts.speaker in told]


def used(history, policy):
    left = history.loads.departures(policy).of_texts
    found = (need for need in needs(history, left) if need.kind is IncidentKind.USED_UNSEEN)
    return sorted((need.position, need.parts[0][0], need.is_held) for need in found)


@examples(300)
@given(histories(st.one_of(none, one_system, many_systems)), policies)
def test_recalls_are_held_as_a_replay_tells(history, policy):
    assert used(history, policy) == sorted(naive_recalls(history, policy))


@examples(150)
@given(histories(st.one_of(none, one_system, many_systems)), policies)
def test_the_curve_is_the_replay_under_every_limit(history, policy):
    curve = curve_of(history, policy, most_adds=10**9)
    most = max(1, policy.load(policy.total(history.entries))) + 2
    shares = {}
    least = policy.least_limit
    for limit in range(least, max(least, most) + 1):
        found = recall_of(history, replace(policy, limit=limit))
        assert curve.held(limit) == found.held, limit
        shares[limit] = found.held
    for share in (0.5, 0.9, 1.0) if curve.recalls else ():
        enough = [
            n for n in shares if all(shares[m] >= share * curve.recalls for m in shares if m >= n)
        ]
        assert curve.smallest_limit(share) == min(enough, default=None)


@given(histories(st.one_of(none, one_system, many_systems)), policies)
def test_prompts_are_the_windows_before_the_calls(history, policy):
    keeps_first = policy.always_keep_system_message_first
    found = prompts_of(history, history.loads.departures(policy), keeps_first, Refusals(history))
    tokens = reusable = breaks = again = 0
    refused = {"OpenAI": 0, "Anthropic": 0}
    last = None
    for position, window in enumerate(windows_before(history, policy)):
        if history.entries[position].type is not MessageType.AI:
            continue
        tokens += sum(history.tokens[each] for each in window) + 3 if window else 0
        if last is not None:
            same = [a == b for a, b in zip(last, window, strict=False)]
            common = window[: [*same, False].index(False)]
            reusable += sum(history.tokens[each] for each in common)
            breaks += len(common) < len(last)
            again += sum(history.tokens[each] for each in {*window} & {*last} - {*common})
        for verdict in verdicts([history.turns[each] for each in window]):
            refused[verdict.provider] += not verdict.accepts
        last = window
    assert (found.tokens, found.reusable, found.breaks) == (tokens, reusable, breaks)
    assert found.again == again
    assert found.refused == refused


SAID = {
    "U": UserMessage("When?"),
    "A": AiMessage("On Friday."),
    "a": AiMessage("On Friday "),
    "e": AiMessage(""),
    "C": AiMessage(None, [ToolExecutionRequest("call00001", "find", "{}")]),
    "D": AiMessage(None, [ToolExecutionRequest("c.2", "find it", "[]")]),
    "c": ToolExecutionResultMessage("call00001", "find", "found"),
    "d": ToolExecutionResultMessage("c.2", "find it", ""),
}


@given(st.text(sorted(SAID), min_size=1, max_size=9), st.sampled_from(sorted(PROVIDERS)))
def test_a_window_is_refused_as_the_linter_says(letters, provider):
    said = [SAID[each] for each in letters]
    turns = {provider: turns_of(said, provider)}
    history = history_from(said, [1] * len(said), 0, range(1, len(said) + 1))
    refusals = Refusals(history, turns, {"anthropic": ["claude-opus-4-6"]})
    for first, newest in combinations_with_replacement(range(len(said)), 2):
        window = dict.fromkeys(range(first, newest + 1))
        models = ["claude-opus-4-6"] if provider == "anthropic" else []
        exact = refusals_in([turns[provider][n] for n in window], provider, models)
        assert bool(refusals.of(OrderedDict(window))) == bool(exact), (letters, first, newest)


def test_a_long_history_of_another_rule_is_tried_on_a_grid():
    said = [UserMessage("ab12"), *[AiMessage("ab12")] * 39]
    history = history_from(said, [10] * 40, 3, range(1, 41))
    curve = curve_of(history, Halving(1), most_adds=2_000)
    assert curve.tried_every > 1
    assert curve.held(480) == 39
    assert {limit % curve.tried_every for limit, _ in curve.points} == {0}


# Facts


def test_facts_are_read_from_each_part_by_itself():
    message = AiMessage(
        "see ab12", [ToolExecutionRequest.of("f1ve5", {"a": "cd34"}, id="x9y8"), None]
    )
    assert facts_of(message) == {"ab12", "cd34"}


def test_words_of_a_project_are_facts_too():
    words = Words(terms=("Zürich", "C++"), prefixes=("INV-",))
    assert facts_of(UserMessage("C++ in Zürich: INV-new, XINV-old, Zürichsee"), words) == {
        "C++",
        "Zürich",
        "INV-new",
    }
    with pytest.raises(InvalidValue, match="must be a text"):
        Words(terms=("",))


@pytest.mark.parametrize("part", ["a", "a-", "-", "1.", "a1@", "A-1 "])
def test_a_long_text_costs_no_more_than_its_length(part):
    """A pattern that tries again from each place takes a hundred times as long for ten times as
    much, which no machine's noise does.
    """

    def seconds(length: int) -> float:
        message = UserMessage(part * (length // len(part)))
        start = time.process_time()
        facts_of(message)
        return time.process_time() - start

    short = min(seconds(20_000) for _ in range(5))
    assert seconds(200_000) < 40 * short


# The public functions


def test_recall_counts_the_facts_that_each_policy_held():
    said = [
        UserMessage("My order is A-1182."),
        AiMessage("Thank you."),
        UserMessage("And the weather?"),
        AiMessage("Order A-1182 ships."),
        UserMessage("A-1182, I said."),
    ]
    short, everything = recall(said, [MessageWindow(1), None])
    sums = short.recalls, short.held, short.nothing_lost, short.user_repeated, short.calls
    assert sums == (1, 0, 0, 0, 2)
    assert short.relative_cost() == short.prompt_tokens / everything.prompt_tokens
    assert (everything.held, everything.nothing_lost, everything.lost) == (1, 1, 0)
    assert short.plus(short).recalls == 2
    assert short.prompt_tokens < everything.prompt_tokens
    assert recall_curve(said, MessageWindow(1)).smallest_limit() == 3
    assert recall_curve(said).smallest_limit() > 3
    assert recall(said, [MessageWindow(1)], terms=("order",))[0].recalls == 1
    assert recall(said, [MessageWindow(1)], terms=("Order",), prefixes=("weath",))[0].recalls == 1
    again = [UserMessage("A-1182"), AiMessage("Hm."), UserMessage("A-1182!"), UserMessage("A-1182")]
    found = recall(again, [MessageWindow(1)])[0]
    assert (found.recalls, found.held, found.user_repeated, found.nothing_lost) == (2, 1, 1, 0)
    assert recall([], [None]) == [Recall(None, conversations=1, nothing_lost=1)]
    assert recall_curve([]).smallest_limit() == 1


def test_the_recalls_of_real_conversations(data_file):
    content = data_file("tau_bench_airline.openai_chat.json").read_bytes()
    estimator = estimator_for("gpt-4o")
    found = [history_of(each.messages, estimator) for each in read_transcripts(content).transcripts]
    curves = [curve_of(history, TokenWindow(1)) for history in found]
    limits = (1_000, 2_000, 3_000, 4_000, 6_000)
    assert sum(curve.recalls for curve in curves) == 1_676
    held = [sum(curve.held(limit) for curve in curves) for limit in limits]
    assert held == [0, 1_215, 1_507, 1_612, 1_665]
    lossless = [sum(curve.held(n) == curve.recalls for curve in curves) for n in limits]
    assert lossless == [9, 41, 71, 88, 98]
    assert bisect_right(held, 1_592) == 3  # 4,000 tokens hold 95 %
    sums = Recall(TokenWindow(4_000))
    for history in found:
        sums = sums.plus(recall_of(history, TokenWindow(4_000)))
    assert (sums.held, sums.nothing_lost) == (1_612, 88)
    assert round(sums.prompt_tokens / sums.calls) == 2_434


def test_words_come_from_the_settings(settings):
    settings.CHATMEMORY = {
        "FACT_TERMS": ["Zürich"],
        "FACT_PREFIXES": ["INV-"],
        "FACT_PATTERNS": [r"case [A-Z]+"],
        "REPEATABLE_TOOLS": ["look"],
        "REMINDERS": ["Zoals gezegd"],
        "REQUESTS": ["Mag ik"],
    }
    own = ("look",), ("zoals gezegd",), ("mag ik",)
    words = Words(("Zürich",), ("INV-",), (r"case [A-Z]+",), *own)
    assert fact_words() == words
    for wrong in ("Zürich", [""], 5):
        settings.CHATMEMORY = {"FACT_TERMS": wrong}
        with pytest.raises(ImproperlyConfigured, match=r"FACT_TERMS|a word that"):
            fact_words()


# Figures of a history over a grid, and their sums


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


def prompts_at(history, kind, limit: int) -> int:
    return recall_of(history, replace(kind, limit=limit)).prompt_tokens
