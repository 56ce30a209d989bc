from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from chatmemory import (
    ChatMemoryProvider,
    InMemoryChatMemoryStore,
    InvalidValue,
    MessageWindowChatMemory,
    TokenWindowChatMemory,
    UserMessage,
)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (
            lambda: MessageWindowChatMemory(7),
            r"id must be a string, not 7: use str\(…\), or max_messages=7",
        ),
        (lambda: TokenWindowChatMemory(900), r"use str\(…\), or max_tokens=900"),
        (lambda: MessageWindowChatMemory(["a"]), r"not \['a'\]: use str\(…\)$"),
        (
            lambda: TokenWindowChatMemory(estimator="gpt-4o"),
            r"not the name 'gpt-4o': use OpenAiTokenCountEstimator\('gpt-4o'\)",
        ),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused(make, error):
    with pytest.raises(InvalidValue, match=error):
        make()


def test_a_provider_has_one_memory_for_each_id():
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, 2, store))
    with ThreadPoolExecutor() as pool:
        assert len(set(map(id, pool.map(memories.get, ["a"] * 20)))) == 1
    first = memories.get("a")
    first.add(UserMessage("hello"))
    assert memories.get("b") is not first
    assert memories.evict("a")
    assert not memories.evict("a")
    assert memories.get("a") is not first
    assert memories.get("a").messages() == [UserMessage("hello")]


def test_a_memory_can_be_made_from_another_one():
    def create(name: str) -> MessageWindowChatMemory:
        memory = MessageWindowChatMemory(name)
        if name != "rules":
            memory.set(memories.get("rules").messages())
        return memory

    memories = ChatMemoryProvider(create)
    memories.get("rules").add(UserMessage("Be brief."))
    assert memories.get("a").messages() == [UserMessage("Be brief.")]


@pytest.mark.parametrize("needed", [{"a": "a"}, {"a": "b", "b": "a"}])
def test_a_memory_cannot_be_made_from_itself(needed):
    def create(name: str) -> MessageWindowChatMemory:
        return memories.get(needed[name]) if name in needed else MessageWindowChatMemory(name)

    memories = ChatMemoryProvider(create)
    for _ in range(2):
        with pytest.raises(InvalidValue, match="create asks for the memory 'a', which it makes"):
            memories.get("a")
    needed.clear()
    assert memories.get("a").id == "a"
