"""Compaction in memories without a ledger: the covered messages, and a summary that stays."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidMessage,
    InvalidValue,
    MessageWindowChatMemory,
    NotCompactable,
    SystemMessage,
    TokenWindowChatMemory,
    UserMessage,
    messages_from_json,
    messages_to_json,
)
from chatmemory.windows.store import ChatMemoryStore
from tests.messages.letters import CALL, RESULT


class JsonStore(ChatMemoryStore):
    """A store that knows nothing but the JSON of a list."""

    def __init__(self):
        self.lists = {}

    def get_messages(self, memory_id):
        return messages_from_json(self.lists.get(memory_id, "[]"))

    def update_messages(self, memory_id, messages):
        self.lists[memory_id] = messages_to_json(messages)

    def delete_messages(self, memory_id):
        self.lists.pop(memory_id, None)


def texts(memory):
    return [getattr(m, "text", None) or m.contents[0].text for m in memory.messages()]


@pytest.mark.parametrize("store", [lambda: None, JsonStore], ids=["own", "JSON"])
def test_a_summary_stays_in_any_store_until_another_covers_it(store):
    memory = MessageWindowChatMemory(max_messages=4, store=store())
    memory.add(SystemMessage("S"), *map(UserMessage, "abc"))
    memory.compact("a and b", keep_last=1)
    assert texts(memory) == ["S", "a and b", "c"]
    memory.add(*map(UserMessage, ["d", "e A-1182", "f"]))
    assert texts(memory) == ["S", "a and b", "e A-1182", "f"]
    memory.compact("all but f", covering=[1, 2], append_terms=1)
    assert texts(memory) == ["S", "all but f\n\nExact terms: A-1182", "f"]
    memory.add(*map(UserMessage, "ghi"))
    assert texts(memory)[1:] == ["all but f\n\nExact terms: A-1182", "h", "i"]


@pytest.mark.parametrize(
    ("kept", "texts_left"),
    [
        ({"keep_last": 0}, ["S", "in short"]),
        ({"keep_last": 1}, ["S", "in short", "bye"]),
        ({"keep_last": 2}, ["S", "in short", "call", "found", "bye"]),
    ],
)
def test_a_call_stays_with_its_results(kept, texts_left):
    memory = MessageWindowChatMemory(max_messages=9)
    said = [UserMessage("a"), UserMessage("b"), AiMessage("call", CALL.tool_execution_requests)]
    memory.add(SystemMessage("S"), *said, RESULT, UserMessage("bye"))
    memory.compact("in short", **kept)
    assert texts(memory) == texts_left


@pytest.mark.parametrize(
    ("summary", "options", "error"),
    [
        ("s", {"keep_last": 4}, NotCompactable),
        ("s", {"covering": [0, 1]}, NotCompactable),
        ("s", {"covering": [1, 2]}, NotCompactable),
        ("s", {"covering": [-1]}, InvalidValue),
        ("s", {"keep_last": True}, InvalidValue),
        ("s", {"keep_last": 0, "append_terms": -1}, InvalidValue),
        ("s", {"keep_last": 1, "covering": [1]}, InvalidValue),
        (" ", {"keep_last": 0}, InvalidMessage),
        (7, {"keep_last": 0}, InvalidMessage),
    ],
)
def test_what_cannot_be_covered_changes_nothing(summary, options, error):
    memory = MessageWindowChatMemory(max_messages=9)
    memory.add(SystemMessage("S"), UserMessage("a"), CALL)
    before = memory.messages()
    with pytest.raises(error):
        memory.compact(summary, **options)
    assert memory.messages() == before


def test_under_asyncio():
    memory = MessageWindowChatMemory(max_messages=4)
    memory.add(*map(UserMessage, "abc"))
    asyncio.run(memory.acompact("in short", keep_last=1))
    assert texts(memory) == ["in short", "c"]


said = st.sampled_from([UserMessage("so it is"), AiMessage("yes"), CALL, RESULT])


@given(st.lists(said, min_size=1, max_size=12), st.integers(0, 12), st.integers(0, 80))
def test_at_least_so_many_messages_stay_or_at_most_so_many_tokens(messages, last, tokens):
    for options in ({"keep_last": last}, {"keep_tokens": tokens}):
        memory = TokenWindowChatMemory(max_tokens=1000)
        memory.extend(messages)
        before = memory.messages()
        try:
            memory.compact("in short", **options)
        except NotCompactable:
            continue
        _, *kept = memory.messages()
        assert kept == before[len(before) - len(kept) :]
        stays_from = len(before) - len(kept)
        behind_call = stays_from and before[stays_from - 1] in (CALL, RESULT)
        assert not (behind_call and kept and kept[0] == RESULT and CALL in before[:stays_from])
        if "keep_last" in options:
            assert len(kept) >= last
        elif kept:
            count = memory._estimator.estimate_token_count_in_message
            assert sum(map(count, kept)) <= tokens
