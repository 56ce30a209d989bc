"""A client with LangChain4j's memory puts its lists into our stores, and reads them back.

It decides by an in-memory store; `langchain4j.explanations` says how many adds explain a list.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import count
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMessage,
    InMemoryChatMemoryStore,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import with_attributes
from chatmemory.reading import conversations, steps
from chatmemory.reading import windows as windows_reads
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore
from chatmemory.windows.compaction import summary_message

from ..langchain4j import Identified, add, explanations
from ..ledger.test_any_changes import undone
from ..properties import examples

NAME, NUMBERS = "twin", count()
words = st.sampled_from(["a", "b", "ok"])
attributes = st.sampled_from([{}, {"id": 1}, {"id": 2, "at": {"b": [1.5], "a": None}}])
messages = st.one_of(
    st.builds(lambda text, own: UserMessage(text, attributes=own), words, attributes),
    st.builds(lambda text, own: AiMessage(text, attributes=own), words, attributes),
    st.builds(SystemMessage, words),
    st.builds(
        lambda own: AiMessage(None, (ToolExecutionRequest("1", "f", "{}"),), attributes=own),
        attributes,
    ),
    st.builds(lambda own: ToolExecutionResultMessage("1", "f", "x", None, own), attributes),
)
places = st.integers(0, 5)
adds = st.tuples(st.just("add"), messages, st.integers(1, 6), st.booleans(), st.booleans())
others = st.one_of(
    st.tuples(st.just("summarize"), st.integers(2, 4), st.booleans()),
    st.tuples(st.just("inject"), places),
    st.tuples(st.just("attributes"), places, attributes),
    st.tuples(st.just("reorder"), st.lists(places, max_size=6)),
    st.tuples(st.just("random"), st.lists(messages, max_size=6)),
)
# Hypothesis takes each branch equally often; mapped ones are branches of their own
mostly_adds = st.one_of(*(adds.map(tuple) for _ in range(6)), others.map(tuple))
changes = st.lists(mostly_adds, min_size=8, max_size=16)


def list_after_add(
    known: list[ChatMessage], message, limit, by_tokens, keeps_first
) -> list[ChatMessage]:
    """Return the list after LangChain4j's memory added a message under this limit."""
    store = InMemoryChatMemoryStore()
    store.update_messages("m", known)
    options = {"id": "m", "store": store, "always_keep_system_message_first": keeps_first}
    if by_tokens:
        TokenWindowChatMemory(max_tokens=limit * 8, **options).add(message)
    else:
        MessageWindowChatMemory(max_messages=limit, **options).add(message)
    return store.get_messages("m")


def list_after_change(known: list[ChatMessage], kind: str, *values) -> list[ChatMessage]:
    """Return the list after the client did something else to it."""
    match kind, values:
        case "summarize", (covered, is_ours):
            text = f"summary {next(NUMBERS)}"
            place = 1 if known and isinstance(known[0], SystemMessage) else 0
            if len(known) - place >= covered:
                summary = summary_message(text) if is_ours else UserMessage(text)
                return [*known[:place], summary, *known[place + covered :]]
        case "inject", (place,):
            injected = UserMessage(f"context {next(NUMBERS)}")
            return [*known[:place], injected, *known[place:]]
        case "attributes", (place, own):
            return [
                with_attributes(each, own) if n == place and each.type != "SYSTEM" else each
                for n, each in enumerate(known)
            ]
        case "reorder", (order,):
            return [known[n] for n in order if n < len(known)]
        case "random", (made,):
            return made
    return known


def check_step(n: int, old: list[Identified], sent: list[ChatMessage], told: Counter) -> None:
    """Check that the newest step tells of the only add that explains a list; of several, it may
    tell of one if earlier lists told whether the client recovers interrupted calls.
    """
    step = steps.step(NAME, n)
    found = explanations(old, sent)
    told["add" if len(found) == 1 else "several" if found else "taken back"] += 1
    assert len(found) != 1 or step.row.kind == "add", (old, sent, found)
    if step.row.kind == "add":
        left = {(each.seq, str(each.reason)) for each in step.change.evicted}
        possible = [{each for each in outcome.departures if each[0] != "new"} for outcome in found]
        assert left in possible, (old, sent, found)


def play(made: list, told: Counter) -> None:
    store = DjangoChatMemoryStore()
    old: list[Identified] = []
    before = 0
    windows = {}
    for kind, *values in made:
        known = [each.message for each in old]
        sent = (
            list_after_add(known, *values)
            if kind == "add"
            else list_after_change(known, kind, *values)
        )
        store.update_messages(NAME, sent)
        entries = store.get_window(NAME).with_messages()
        got = [each.message for each in entries]
        assert got == sent, (known, sent)
        step = conversations.memory(NAME).last_step
        windows[step] = got
        if known == sent and before:
            assert step == before, "an equal list is no step"
        elif kind == "add" and known:
            assert step == before + 1
            check_step(step, old, sent, told)
        old, before = [Identified(each.seq, each.message) for each in entries], step
    for step, window in windows.items():
        assert windows_reads.window(NAME, step).messages == window
    assert verify(NAME) is None


@pytest.mark.database
def test_any_lists_come_back_and_adds_are_recorded_as_adds(db):
    told: Counter = Counter()

    @examples(260)
    @given(changes)
    def any_lists(made):
        with undone():
            play(made, told)

    any_lists()
    assert sum(told.values()) > 500
    assert told["add"] > 3 * (told["several"] + told["taken back"])


interrupted = st.builds(
    lambda n, ids: AiMessage(f"{n}", [ToolExecutionRequest(id, "f", "{}") for id in ids]),
    st.integers(0, 99),
    st.sampled_from(["a", "ab", "abc"]),
)
answers = st.builds(lambda of: ToolExecutionResultMessage(of, "f", "x"), st.sampled_from("abc"))
said = st.lists(
    st.one_of(messages, messages, interrupted, answers, answers), min_size=9, max_size=18
)


@pytest.mark.database
def test_a_client_that_only_adds_is_told_no_reason_that_its_policy_did_not_have(db):
    told: Counter = Counter()

    @examples(120)
    @given(said, st.integers(1, 8), st.booleans(), st.booleans())
    def any_adds(added, limit, keeps_first, recovers):
        with undone():
            adds = partial(
                add,
                over_before=lambda listed: len(listed) > limit,
                over_after=lambda listed: len(listed) > limit,
                keep_first=keeps_first,
                recovers=recovers,
            )
            play_adds(added, adds, told)

    any_adds()
    # The others have several explanations, in windows that an interrupted call begins
    assert told["told"] > 0.85 * told["left"]
    assert told["INTERRUPTED"] > 0.6 * told["interrupted"]


def play_adds(added: list[ChatMessage], adds, told: Counter) -> None:
    """Send the list after each add, and check the reasons that the ledger tells."""
    store, old = DjangoChatMemoryStore(), []
    for message in added:
        outcome = adds(old, Identified("new", message))
        known = {each.key: each.message for each in old} | {"new": message}
        sent = [known[key] for key in outcome.keys] if outcome else []
        if outcome is None or sent == [each.message for each in old]:
            continue
        store.update_messages(NAME, sent)
        listed = store.get_window(NAME).with_messages()
        assert [each.message for each in listed] == sent
        left = {each for each in outcome.departures if each[0] != "new"}
        count_told(left, steps.step(NAME, conversations.memory(NAME).last_step), told)
        old = [Identified(each.seq, each.message) for each in listed]


def count_told(left: set, step, told: Counter) -> None:
    if not left:
        return
    told["left"] += 1
    told["interrupted"] += sum(reason == "INTERRUPTED" for _, reason in left)
    if step.row.kind == "add":
        told["told"] += 1
        evicted = {(each.seq, str(each.reason)) for each in step.change.evicted}
        assert evicted == left
        told["INTERRUPTED"] += sum(reason == "INTERRUPTED" for _, reason in left)


def test_any_lists_come_back_over_http(served):
    with HttpChatMemoryStore(served.url, served.token) as store:

        @examples(24)
        @given(changes)
        def any_lists(made):
            name, known = uuid4().hex, []
            for kind, *values in made:
                sent = (
                    list_after_add(known, *values)
                    if kind == "add"
                    else list_after_change(known, kind, *values)
                )
                store.update_messages(name, sent)
                known = store.get_messages(name)
                assert known == sent

        any_lists()
