"""The linter, repairs and finders take time in line with the size of a window, of whatever shape.

`make test` asks the linter of one provider, and tries plain windows. What `make attack` tries
besides is marked long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from chatmemory import ChatMessage, UserMessage, lint, recall, repair
from chatmemory.advice import advise
from chatmemory.exceptions import NotCompactable
from chatmemory.formats.building import SessionBuilder
from chatmemory.lint import PROVIDERS
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.sessions import Session
from chatmemory.recall.compactions import compaction_evidence, dropped_terms
from chatmemory.recall.facts import NO_WORDS, facts_of, words_of
from chatmemory.recall.folding import fold
from chatmemory.recall.frontier import figures_of, tried_of_kind
from chatmemory.recall.history import history_of
from chatmemory.recall.incidents import incidents_under
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.compaction import (
    all_but_last,
    check_covered,
    compact_with_terms,
    summary_message,
)
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, MessageWindow, TokenWindow
from chatmemory.windows.window import Entry, Window
from tests.advice.fleets import PRICES, all_hold

from .shapes import POLICIES, SHAPES, assert_grows_in_line

N = 2_000
QUICK = {"anthropic"}
PROVIDERS_ASKED = [
    pytest.param(each, marks=() if each in QUICK else pytest.mark.long) for each in PROVIDERS
]
POLICIES_TRIED = [
    pytest.param(each, marks=() if each == "plain" else pytest.mark.long) for each in POLICIES
]

SHAPES_CLEARED = [
    pytest.param(each, marks=() if each == "one call with n results" else pytest.mark.long)
    for each in SHAPES
]


@pytest.mark.parametrize("provider", PROVIDERS_ASKED)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("act", [lint, repair], ids=lambda act: act.__name__)
def test_rules_and_repairs(act, provider, shape):
    def prepared(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](n)
        return lambda: act(messages, provider=provider)

    assert_grows_in_line(prepared, N)


@pytest.mark.parametrize("policy", POLICIES_TRIED)
@pytest.mark.parametrize("shape", SHAPES)
def test_incidents(policy, shape):
    def prepared(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](n)
        return lambda: incidents_under(POLICIES[policy](20), messages)

    assert_grows_in_line(prepared, N)


@pytest.mark.parametrize("shape", SHAPES)
def test_recall(shape):
    def prepared(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](n)
        policies = [MessageWindow(20), TokenWindow(400)]
        return lambda: recall(messages, policies)

    assert_grows_in_line(prepared, N)


@pytest.mark.parametrize("shape", SHAPES_CLEARED)
def test_figures_for_advice(shape):
    """The grid of limits grows with the logarithm of a conversation: see the next test."""
    tried = tried_of_kind(TokenWindow(400))
    tried = replace(tried, chosen_limits=((200, 400, 2_000),) * len(tried.variants))

    def prepared(n: int) -> Callable[[], object]:
        history = history_of(SHAPES[shape](n), estimator_for(DEFAULT_ESTIMATOR), NO_WORDS)
        return lambda: figures_of(history, tried, TokenWindow(400))

    assert_grows_in_line(prepared, N)


def test_the_policies_that_are_tried_for_advice_are_few():
    tried = tried_of_kind(TokenWindow(400))
    counts = [
        sum(len(tried.limits(variant, most)) for variant in range(len(tried.variants)))
        for most in (100_000, 10_000_000)
    ]
    assert counts[1] < 2 * counts[0] < 1_000


def test_advice_about_many_conversations():
    def prepared(n: int) -> Callable[[], object]:
        fleet = [all_hold(f"c{each}", range(700, 1_000, 50), 800 + each % 400) for each in range(n)]
        return lambda: advise(fleet, prices=PRICES)

    assert_grows_in_line(prepared, N)


def test_results_are_added_where_no_user_message_follows():
    """The rest of a turn leaves before the next user message, which is looked for once."""

    def prepared(n: int) -> Callable[[], object]:
        *_, first = entries = [Entry.of(each) for each in SHAPES["n orphans"](n)]
        pinned = replace(entries[0], pinned=True)
        window = Window([pinned, *entries[1:]])
        arrivals = [replace(first, key=object()) for _ in range(n)]
        policy = MessageWindow(n, snap_to_user=True)
        return lambda: [*fold(window, arrivals, policy)]

    assert_grows_in_line(prepared, N // 2)


@pytest.mark.parametrize("shape", SHAPES_CLEARED)
def test_clearing(shape):
    def prepared(n: int) -> Callable[[], object]:
        entries = [Entry.of(message, tokens=40) for message in SHAPES[shape](n)]
        policy, arrival = TokenWindow(40 * n, clear_tool_results=1), Entry.of(UserMessage("go"), 40)
        return lambda: clear_for(Window(entries), arrival, policy, lambda message: 14)

    assert_grows_in_line(prepared, N)


def one_compaction(messages: Sequence[ChatMessage]) -> Session:
    """A summary of one half of the messages, followed by the other half."""
    builder, half = SessionBuilder(), len(messages) // 2
    for each in messages[:half]:
        builder.add(each)
    builder.compact(UserMessage("They talked."))
    for each in messages[half:]:
        builder.add(each)
    return builder.session()


def some_compactions(messages: Sequence[ChatMessage]) -> Session:
    builder = SessionBuilder()
    for n, each in enumerate(messages):
        builder.add(each)
        if n % (len(messages) // 50) == 2:
            builder.compact(UserMessage("They talked."))
    return builder.session()


@pytest.mark.parametrize(
    "compacted", [pytest.param(one_compaction, marks=pytest.mark.long), some_compactions]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_terms_that_summaries_lost(shape, compacted):
    def prepared(n: int) -> Callable[[], object]:
        session = compacted(SHAPES[shape](n))
        return lambda: compaction_evidence(session)

    assert_grows_in_line(prepared, 2 * N, times=2)  # of shorter sessions, nothing is packed


def test_terms_that_are_looked_for_in_a_long_summary():
    """Twenty thousand terms and a text of 400 kB, of which each place may begin one of them."""

    def prepared(n: int) -> Callable[[], object]:
        replaced = [UserMessage(" ".join(f"A-{i:06}" for i in range(n)))]
        summary = "A-9" * (20 * n)
        return lambda: dropped_terms(replaced, summary)

    assert_grows_in_line(prepared, 8_000)


def test_terms_for_which_there_is_no_room():
    """The summary is counted anew for each number of terms that is tried."""

    def prepared(n: int) -> Callable[[], object]:
        window = Window([Entry.of(UserMessage(f"{each}")) for each in range(3)])
        covered, found = list(window)[:2], [f"A-{i:06}" for i in range(n)]
        policy = TokenWindow(10 * n, fixed_overhead=0)

        def summary_with(terms: Sequence[str]) -> Entry:
            message = summary_message("word " * n, terms)
            words = message.contents[0].text.replace("\n", " ").split(" ")
            return Entry.of(message, 9 * n + sum(2 * len(each) for each in words[n:]))

        return lambda: compact_with_terms(window, covered, found, summary_with, policy)

    assert_grows_in_line(prepared, N)


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_that_a_summary_may_cover(shape):
    def prepared(n: int) -> Callable[[], object]:
        entries = [Entry.of(each, 1) for each in SHAPES[shape](n)]

        def covers() -> None:
            all_but_last(entries, tokens=10)
            with suppress(NotCompactable):
                check_covered(entries, entries)

        return covers

    assert_grows_in_line(prepared, N)


def test_words_that_begin_with_punctuation():
    words = words_of([], ["-", "A-"])

    def prepared(n: int) -> Callable[[], object]:
        lines = [UserMessage("-" * n), UserMessage("A-" * n), UserMessage("/-" * n)]
        return lambda: [facts_of(each, words) for each in lines]

    assert_grows_in_line(prepared, 50_000)
