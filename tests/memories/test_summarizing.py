"""A memory that replaces its oldest messages by a summary before it is full."""

from __future__ import annotations

import asyncio
import logging
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InMemoryChatMemoryStore,
    InvalidValue,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.ledger.verification import verify
from chatmemory.memories.summarizing import SummarizingChatMemory
from chatmemory.messages.message import text_of
from chatmemory.models import Step
from chatmemory.reading import history, steps
from chatmemory.reading.feed import feed
from chatmemory.recall.index import index_of
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.compaction import is_summary
from chatmemory.windows.window import Entry

CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
RESULT = ToolExecutionResultMessage("1", "find", "found order A-1182 of today")


def order_message(n):
    return UserMessage(f"message {n} says that order A-{1000 + n} is on its way")


class Summarizer:
    """A user's callback: it keeps its arguments, and returns a text."""

    def __init__(self, text="They talked."):
        self.got, self.text = [], text

    def __call__(self, messages):
        self.got.append(messages)
        return self.text


def make(summarize, max_tokens=400, **options):
    return SummarizingChatMemory("m", max_tokens, summarize, keep_tokens=100, **options)


def kinds(memory):
    return ["summary" if is_summary(m) else m.type.value for m in memory.messages()]


def test_nothing_is_summarized_while_there_is_room():
    summarize = Summarizer()
    memory = make(summarize)
    memory.add(SystemMessage("S"), *map(order_message, range(5)))
    assert (summarize.got, len(memory.messages())) == ([], 6)


def test_the_oldest_are_replaced_and_nothing_is_evicted():
    summarize = Summarizer()
    memory = make(summarize, append_terms=3)
    memory.add(SystemMessage("S"))
    for n in range(20):
        memory.add(order_message(n))
    system, summary, *kept = memory.messages()
    assert (system.text, is_summary(summary)) == ("S", True)
    assert kept == [order_message(n) for n in range(20 - len(kept), 20)]
    assert summary.contents[0].text.startswith("They talked.\n\nExact terms: A-10")
    first, *later = summarize.got
    assert first == [order_message(n) for n in range(len(first))]
    assert all(is_summary(messages[0]) for messages in later)
    said = [m for messages in summarize.got for m in messages if not is_summary(m)]
    assert said == [order_message(n) for n in range(20 - len(kept))]


@pytest.mark.parametrize("fails", [lambda messages: 1 / 0, lambda messages: "", lambda m: None])
def test_a_failure_is_logged_and_the_plain_window_decides(fails, caplog):
    memory = make(fails)
    with caplog.at_level(logging.ERROR):
        for n in range(30):
            memory.add(order_message(n))
    assert "memory 'm' was not summarized" in caplog.text
    assert memory.messages()[-1] == order_message(29)
    assert set(kinds(memory)) == {"USER"}


def test_a_summary_that_is_too_long_is_not_applied():
    memory = make(Summarizer("word " * 500))
    for n in range(30):
        memory.add(order_message(n))
    assert set(kinds(memory)) == {"USER"}


def test_messages_added_meanwhile_stay_and_one_summary_is_written_at_a_time():
    begun, goes_on = Event(), Event()
    calls = []

    def summarize(messages):
        calls.append(len(messages))
        begun.set()
        assert goes_on.wait(10)
        return "They talked."

    memory = make(summarize)
    thread = Thread(target=memory.extend, args=([order_message(n) for n in range(19)],))
    thread.start()
    assert begun.wait(10)
    memory.add(order_message(19))  # while the first summary is written
    goes_on.set()
    thread.join(10)
    assert len(calls) == 1
    assert kinds(memory)[0] == "summary"
    assert memory.messages()[-1] == order_message(19)


def test_messages_that_left_meanwhile_are_not_summarized():
    memory = make(lambda messages: memory.clear() or "They talked.")
    memory.extend([order_message(n) for n in range(19)])
    assert memory.messages() == []


def test_under_asyncio():
    memory = make(Summarizer())
    asyncio.run(memory.aextend([order_message(n) for n in range(19)]))
    assert kinds(memory)[0] == "summary"


@pytest.mark.parametrize("options", [{"start_at": 0}, {"start_at": 1.5}])
def test_arguments_are_checked(options):
    with pytest.raises(InvalidValue, match="start_at"):
        make(Summarizer(), **options)
    with pytest.raises(InvalidValue, match="summarize must be a function"):
        SummarizingChatMemory("m", 400, "gpt-4o")


@pytest.mark.django_db
def test_the_ledger_has_the_compactions(transactional_db):
    memory = make(Summarizer(), store=DjangoChatMemoryStore())
    memory.add(SystemMessage("S"))
    for n in range(45):
        memory.add(order_message(n))
    assert len(history.all_messages("m")) == 46
    assert Step.objects.filter(kind="compact").count() >= 2
    assert not [each for step in steps.steps("m", size=200) for each in evictions_for_room(step.n)]
    assert verify("m") is None


@pytest.mark.django_db
def test_a_step_that_evicts_says_why_no_summary_took_the_place(transactional_db, operator_client):
    store, words = DjangoChatMemoryStore(), "No summary took their place: "
    memory = make(lambda messages: 1 / 0, store=store)
    for n in range(30):
        memory.add(order_message(n))
    # Another process has not tried yet, and does not know the error
    make(Summarizer("too long " * 500), store=store).add(order_message(30))
    notes = {step.n: step.note for step in steps.steps("m", size=50)}
    assert {n for n, note in notes.items() if note} == {n for n in notes if evictions_for_room(n)}
    assert set(filter(None, notes.values())) == {
        f"{words}the last one failed (ZeroDivisionError).",
        f"{words}none was there yet.",
    }
    assert verify("m") is None
    page = operator_client.get("/c/m/?at=30").content.decode()
    assert page.count(f"{words}the last one failed (ZeroDivisionError).") == 2  # caption and Why?
    assert feed()[0].step == 31


def evictions_for_room(step):
    change = steps.step("m", step).change
    return [each for each in change.evicted if each.reason != "SUMMARIZED"]


@given(
    st.lists(
        st.sampled_from([order_message(1), CALL, RESULT, AiMessage("yes"), order_message(2000)]),
        max_size=40,
    ),
    st.integers(120, 500),
    st.integers(0, 3),
)
def test_memory_never_exceeds_its_limit_and_ends_with_what_was_said_last(said, limit, words):
    memory = make(Summarizer("so it is " * (1 + 20 * words)), max_tokens=limit)
    for message in said:
        memory.add(message)
    left, policy = memory.messages(), memory.policy()
    weighed = policy.total(Entry.of(each, memory._count(each)) for each in left)
    assert policy.load(weighed) <= limit or not left
    assert left[-1:] == said[-1:] or not left
    assert sum(map(is_summary, left)) <= 1


@pytest.mark.parametrize("is_stored", [False, True])
def test_an_index_names_the_terms_that_the_summary_lost(db, is_stored):
    store = DjangoChatMemoryStore() if is_stored else InMemoryChatMemoryStore()
    summarize = Summarizer("They talked about A-1001.")
    memory = make(summarize, 800, store=store, low_water=0.2, index_terms=50)
    memory.add(SystemMessage("S"))
    for n in range(36):
        memory.add(order_message(n))
    _, summary, index, *kept = memory.messages()
    assert summarize.got
    assert text_of(summary) == "They talked about A-1001."
    named = {row.term for row in index_of(index).listed}
    shown = {f"A-{1000 + n}" for n in range(36)} - {"A-1001"}
    assert named == shown - {each for each in shown if any(each in text_of(m) for m in kept)}
    assert not is_stored or verify("m") is None
