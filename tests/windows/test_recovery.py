"""Interrupted tool calls: the rule of `windows.recovery`, stated a second time, and its use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    MessageWindowChatMemory,
    NotCompactable,
    NotPinnable,
    SummarizingChatMemory,
    SystemMessage,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    TurnWindowChatMemory,
    UserMessage,
    policy_from_dict,
    policy_from_text,
    services,
    text_of_policy,
)
from chatmemory.ledger.verification import verify
from chatmemory.reading import simulation, steps, windows
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.recovery import in_interrupted_calls, interrupted_calls
from chatmemory.windows.transitions import admit, visible
from chatmemory.windows.window import Entry, Window

from ..langchain4j import left_out
from ..properties import examples

RECOVERS = {"auto_recover_orphaned_tool_messages": True}
ids = st.sampled_from([None, "", " \t", "a", "b", "c"])


def call(*ids: str | None) -> AiMessage:
    return AiMessage(None, [ToolExecutionRequest(id, "find", "{}") for id in ids])


def result(id: str | None) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(id, "find", "x")


messages = st.one_of(
    st.lists(ids, min_size=1, max_size=3).map(lambda some: call(*some)),
    ids.map(result),
    ids.map(result),
    st.just(UserMessage("q")),
    st.just(AiMessage("a")),
    st.sampled_from([SystemMessage("Be brief."), SystemMessage("Be kind.")]),
)


@examples(1_000)
@given(st.lists(messages, max_size=12))
def test_the_rule_is_what_the_pull_request_says(said):
    entries = [Entry.of(each) for each in said]
    gone = in_interrupted_calls(interrupted_calls(entries))
    assert {entries.index(each) for each in gone} == left_out(said)
    for each in interrupted_calls(entries):
        assert each.is_last == (each.entries[-1] is entries[-1])


@examples(300)
@given(st.lists(messages, max_size=12), messages, st.integers(1, 8))
def test_a_read_writes_nothing_and_an_add_removes(said, arrival, limit):
    policy = MessageWindow(limit, **RECOVERS)
    entries = [*map(Entry.of, said)]
    window = Window(entries)
    seen = [entry.message for entry in visible(window, policy)]
    kept = [each for place, each in enumerate(said) if place not in left_out(said)]
    assert seen == [e.message for e in visible(Window(map(Entry.of, kept)), MessageWindow(limit))]
    assert list(window) == entries
    transition = admit(window, Entry.of(arrival), policy)
    removed = [entries.index(e.entry) for e in transition.evictions if e.reason == "INTERRUPTED"]
    is_result = isinstance(arrival, ToolExecutionResultMessage)
    expected = [] if is_result or transition.ignored else sorted(left_out(said))
    assert removed == expected
    first_others = [e.reason == "INTERRUPTED" for e in transition.evictions]
    assert first_others == sorted(first_others, reverse=True), "they leave before the others"


def test_an_interrupted_call_leaves_with_the_next_message():
    memory = MessageWindowChatMemory("m", 9, **RECOVERS)
    memory.add(UserMessage("q"), call("a", "b"), result("a"))
    assert memory.messages() == [UserMessage("q")]
    assert memory.messages_with_interrupted() == [UserMessage("q"), call("a", "b"), result("a")]
    memory.add(result("b"))
    assert len(memory.messages()) == 4
    memory.add(call("c"), UserMessage("Hello?"), result("c"))
    assert memory.messages()[-2:] == [UserMessage("Hello?"), result("c")]


@pytest.mark.parametrize("kind", [TokenWindowChatMemory, TurnWindowChatMemory])
def test_all_windows_have_the_option(kind):
    memory = kind("m", 500, **RECOVERS)
    memory.add(UserMessage("q"), call("a"))
    assert memory.messages() == [UserMessage("q")]
    assert kind("m", 500).policy().options == {}


def test_results_of_another_format_find_a_call_in_flight():
    memory = MessageWindowChatMemory("m", 9, **RECOVERS)
    asked = {"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    memory.add_from([{"role": "user", "content": "q"}], "openai_chat")
    memory.add_from([{"role": "assistant", "tool_calls": [asked]}], "openai_chat")
    memory.add_from([{"role": "tool", "tool_call_id": "a", "content": "x"}], "openai_chat")
    (_, _, found) = memory.messages()
    assert (found.id, found.tool_name) == ("a", "find")


def test_a_policy_with_the_option_is_written_and_read():
    policy = MessageWindow(9, **RECOVERS)
    assert policy_from_text(text_of_policy(policy)) == policy
    assert policy_from_dict(policy.to_dict()) == policy
    assert policy.options == RECOVERS
    assert MessageWindow(9).options == {}
    assert not MessageWindow(9, meters_only=True, **RECOVERS).recovers


@pytest.fixture
def m(db) -> str:
    services.create("m", MessageWindow(9, **RECOVERS))
    services.add("m", [UserMessage("q"), call("a", "b"), result("a")])
    return "m"


def test_the_window_of_a_conversation_leaves_it_out_until_an_add_removes_it(m):
    now = windows.window(m)
    assert (now.seqs, now.interrupted_seqs, now.over_limit) == ([1], (2, 3), ())
    assert (now.totals.count, now.stored.count) == (1, 3)
    assert now.interrupted[0].is_last
    services.add(m, [UserMessage("Hello?")])
    left = [(e.seq, e.reason, e.because_seq) for e in steps.step(m, 4).change.evicted]
    assert left == [(2, "INTERRUPTED", 4), (3, "INTERRUPTED", 2)]
    assert windows.window(m).seqs == [1, 4]
    assert windows.window(m, 3).interrupted_seqs == (2, 3)
    assert [each.read for each in windows.window(m, 3).rows] == [UserMessage("q")]
    assert verify(m) is None


def test_a_policy_that_gets_the_option_hides_at_once_and_one_that_loses_it_shows(m):
    services.change(m, policy=MessageWindow(9))
    assert windows.window(m).seqs == [1, 2, 3]
    found = simulation.simulate(m, [], policy=MessageWindow(9, **RECOVERS))
    assert found.window.seqs == [1]
    assert [each.seq for each in found.trim.evicted] == [2, 3]
    services.add(m, [UserMessage("Hello?")])
    services.change(m, policy=MessageWindow(9, **RECOVERS))
    assert windows.window(m).seqs == [1, 4]
    assert not windows.window(m).interrupted[0].is_last
    services.add(m, [AiMessage("a")])
    assert windows.window(m).seqs == [1, 4, 5]
    assert verify(m) is None


def test_an_equal_system_message_removes_nothing(db):
    services.create("m", MessageWindow(9, **RECOVERS))
    services.add("m", [SystemMessage("Be brief."), call("a")])
    (change,) = services.add("m", [SystemMessage("Be brief.")])
    assert change.ignored
    assert windows.window("m").interrupted_seqs == (2,)


def test_a_simulation_shows_what_an_add_would_remove(m):
    found = simulation.simulate(m, [UserMessage("Hello?")])
    (change,) = found.changes
    assert [(e.seq, e.reason) for e in change.evicted] == [(2, "INTERRUPTED"), (3, "INTERRUPTED")]
    answered = simulation.simulate(m, [result("b")])
    assert answered.window.seqs == [1, 2, 3, 4]
    asks_again = simulation.simulate(m, [call("c")])
    assert asks_again.window.seqs == [1]
    assert asks_again.window.interrupted_seqs == (4,)


def test_no_summary_covers_an_interrupted_call(m):
    services.add(m, [result("b"), AiMessage("a"), UserMessage("p"), call("c")])
    services.compact(m, "They asked.", keep_last=1)
    now = windows.window(m)
    assert (len(now.seqs), now.interrupted_seqs) == (2, (7,))
    with pytest.raises(NotCompactable, match="not answered completely"):
        services.compact(m, "All.", covering=[6, 7])
    assert verify(m) is None


def test_a_memory_that_summarizes_leaves_an_interrupted_call_out(db):
    given_to = []

    def summarize(some):
        given_to.extend(some)
        return "They asked."

    memory = SummarizingChatMemory(
        "m", 80, summarize, keep_tokens=20, store=DjangoChatMemoryStore(), **RECOVERS
    )
    memory.add(*[UserMessage(f"question {n} of many") for n in range(6)], call("a"))
    memory.add(*[UserMessage(f"another question {n}") for n in range(6)])
    assert call("a") not in given_to
    assert given_to
    assert verify("m") is None


def test_a_pin_keeps_the_whole_block(m):
    services.change(m, policy=MessageWindow(9))
    services.add(m, [UserMessage("p")])
    services.pin(m, 2)
    services.change(m, policy=MessageWindow(9, **RECOVERS))
    services.add(m, [UserMessage("Hello?")])
    assert windows.window(m).seqs == [1, 2, 3, 4, 5]
    assert verify(m) is None


def test_a_hidden_call_cannot_be_pinned(m):
    with pytest.raises(NotPinnable, match="was not answered completely"):
        services.pin(m, 2)
