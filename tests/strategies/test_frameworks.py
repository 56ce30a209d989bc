"""Each strategy beside what its library's documentation says of it, on hand-made conversations.

A framework that is not installed here is left out; `make strategies` has all of them.
"""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, SystemMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.messages.estimators import estimator_for
from chatmemory.recall.history import history_of
from chatmemory.strategies import STRATEGIES, Conversation, Settings, Summary, measure
from tests.strategies.talks import EachIsOne, chat, lookups, prompt_at_the_end

ONES = EachIsOne()
FRAMEWORKS = [each for each in STRATEGIES if each.package]


def run_of(name: str, **sizes: object):
    (strategy,) = (each for each in STRATEGIES if each.name == name)
    if not strategy.is_installed:
        pytest.skip(f"{strategy.package} is not installed here: make strategies has it")
    return strategy.run(Settings(**{"estimator": ONES, **sizes}))


def test_langchain_keeps_the_newest_from_a_user_message_on():
    """The example of `trim_messages`: of four messages that fit, the system's and those from a user
    message on are kept.
    """
    run = run_of("langchain_trim", tokens=4, counts_alike=True)
    assert prompt_at_the_end(run, [*chat(2), UserMessage("And now?")]) == [0, 3, 4, 5]
    run = run_of("langchain_trim", tokens=3, counts_alike=True)
    assert prompt_at_the_end(run, [*chat(2), UserMessage("And now?")]) == [0, 5]


def test_langchain_counts_by_its_own_measure_if_it_is_not_told_otherwise():
    """Four characters are a token, and each message has three tokens more."""
    said = [UserMessage("a" * 400), AiMessage("b" * 400), UserMessage("c" * 400)]
    assert prompt_at_the_end(run_of("langchain_trim", tokens=330), said) == [0, 1, 2]
    assert prompt_at_the_end(run_of("langchain_trim", tokens=200), said) == [2]


def test_langchain_clears_all_tool_results_but_the_newest_three():
    said = [*lookups(5), UserMessage("And now?")]
    found = prompt_at_the_end(run_of("langchain_clear", tokens=10, counts_alike=True), said)
    cleared = [each for each in found if isinstance(each, ToolExecutionResultMessage)]
    assert [(each.id, each.contents[0].text) for each in cleared] == [
        ("call-0", "[cleared]"),
        ("call-1", "[cleared]"),
    ]
    assert [each for each in found if isinstance(each, int)] == [
        n for n in range(len(said)) if n not in (2, 6)
    ]
    whole = prompt_at_the_end(run_of("langchain_clear", tokens=21, counts_alike=True), said)
    assert whole == list(range(len(said)))


def test_langchain_puts_a_summary_in_the_place_of_all_but_twenty():
    said = [*chat(15), UserMessage("And now?")]
    run = run_of("langchain_summary", tokens=25, counts_alike=True)
    first, summary, *rest = prompt_at_the_end(run, said)
    assert first == 0
    assert isinstance(summary, Summary)
    assert summary.before == "Here is a summary of the conversation to date:\n\n"
    assert rest[-1] == len(said) - 1
    assert "Question 0?" in run.billed[0]


def test_a_call_and_its_results_are_not_separated_by_a_summary():
    """Twenty messages would begin with a result: its call stays, too."""
    said = lookups(6)[:-1]  # the newest of 23 messages is a result
    run = run_of("langchain_summary", tokens=22, counts_alike=True)
    kept = [each for each in prompt_at_the_end(run, said) if isinstance(each, int)]
    assert len(kept) in (20, 21)
    assert kept[0] % 4 != 2


def test_openai_compacts_after_a_turn_with_ten_items():
    """The user's messages stay, and one item takes the place of all others."""
    assert prompt_at_the_end(run_of("openai_compaction"), chat(9)) == list(range(19))
    run = run_of("openai_compaction")
    found = prompt_at_the_end(run, [*chat(10), UserMessage("And now?")])
    assert found == [0, *range(1, 21, 2), Summary(0), 21]
    assert len(run.billed) == 1
    again = prompt_at_the_end(run_of("openai_compaction"), [*chat(20), UserMessage("And now?")])
    assert again == [0, *range(1, 41, 2), Summary(1), 41]


def test_a_message_with_text_and_a_call_is_two_items():
    said = [
        AiMessage("Wait.", each.tool_execution_requests) if n % 4 == 1 else each
        for n, each in enumerate(lookups(3))
    ]
    found = prompt_at_the_end(run_of("openai_compaction"), [*said, UserMessage("And now?")])
    assert found == [0, 4, 8, Summary(0), 12]
    without = prompt_at_the_end(run_of("openai_compaction"), [*lookups(3), UserMessage("And now?")])
    assert without == list(range(13))


def test_google_compacts_five_turns_and_overlaps_by_one():
    """As in its example with other numbers: 1 to 5, then 5 to 10; both summaries are sent."""
    assert prompt_at_the_end(run_of("google_adk"), chat(5)) == list(range(11))
    found = prompt_at_the_end(run_of("google_adk"), [*chat(6), UserMessage("And now?")])
    assert found[0] == 0
    assert isinstance(found[1], Summary)
    assert found[2:] == [11, 12, 13]
    long = [*lookups(10, "found " * 1_000), UserMessage("And now?")]
    run = run_of("google_adk")
    first, second, newest = prompt_at_the_end(run, long)
    assert isinstance(first, Summary)
    assert isinstance(second, Summary)
    assert newest == 40
    assert "Look at 4." in run.billed[0]
    assert "Look at 4." in run.billed[1]
    assert "Look at 3." not in run.billed[1]


def test_google_writes_no_summary_that_is_longer_than_what_it_replaces():
    """By the length of the summary before."""
    found = prompt_at_the_end(run_of("google_adk"), [*chat(10), UserMessage("And now?")])
    assert isinstance(found[1], Summary)
    assert found[2:] == list(range(11, 22))


def test_llama_index_flushes_a_tenth_and_begins_with_the_user():
    """70 % of the limit are for messages; each of these has 100 tokens by its tokenizer."""
    words = " ".join(["word"] * 99)
    said = [UserMessage(words) if n % 2 == 0 else AiMessage(words) for n in range(9)]
    run = run_of("llama_index", tokens=1_000)
    assert prompt_at_the_end(run, said[:7]) == list(range(7))
    assert prompt_at_the_end(run_of("llama_index", tokens=1_000), said[:8]) == list(range(2, 8))


def test_microsoft_keeps_the_newest_groups():
    """A tool call and its results are one group, and the system message stays."""
    found = prompt_at_the_end(run_of("agent_framework", messages=3), [*chat(2), *lookups(1)])
    assert found == [0, *range(5, 9)]


@pytest.mark.parametrize("strategy", FRAMEWORKS, ids=lambda each: each.name)
def test_a_strategy_takes_every_message_of_a_conversation(strategy):
    """None of them is lost before its limit, and none is sent twice."""
    said = [SystemMessage("Be brief."), *lookups(2, "A-1182")]
    run = run_of(strategy.name, tokens=100_000, messages=100)
    assert prompt_at_the_end(run, said) == list(range(len(said)))
    counted = estimator_for("gpt-4o")
    talk = Conversation(said, history_of(said, counted), counted)
    found = measure(talk, run_of(strategy.name, tokens=100_000, messages=100))
    assert found.held == found.recalls
    assert found.bill == found.everything
