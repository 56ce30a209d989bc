"""Memories and their provider; what cannot be stored is refused with what to give instead."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatmemory import (
    ChatMemoryProvider,
    ChatMemoryStore,
    InMemoryChatMemoryStore,
    InvalidMessage,
    InvalidValue,
    MessageWindow,
    MessageWindowChatMemory,
    OpenAiTokenCountEstimator,
    TokenWindowChatMemory,
    UserMessage,
    messages_from_json,
    messages_to_json,
    policies_from_text,
    policy_from_text,
    recall,
    recall_curve,
)
from chatmemory.stores.database import DjangoChatMemoryStore

HELLO = UserMessage("hello")
NO_MESSAGE = "expected a chat message such as UserMessage('Hello'), not"
NO_LIST = "expected a list of chat messages, not"
READ_IT = "parse_messages([…], 'openai_chat') of chatmemory.formats reads it"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda memory: memory.add("hello"), f"{NO_MESSAGE} 'hello'"),
        (lambda memory: memory.add({"role": "user", "content": "hello"}), READ_IT),
        (lambda memory: memory.add([HELLO]), "not a list: pass its messages one by one"),
        (lambda memory: memory.extend("hello"), f"{NO_LIST} 'hello'"),
        (lambda memory: memory.extend(HELLO), f"{NO_LIST} UserMessage("),
        (lambda memory: memory.set({"role": "user"}), f"{NO_LIST} {{'role': 'user'}}"),
        (lambda memory: memory.set(["hello"]), f"{NO_MESSAGE} 'hello'"),
        (lambda memory: messages_to_json(HELLO), NO_LIST),
    ],
)
def test_a_memory_holds_chat_messages(call, words):
    memory = MessageWindowChatMemory(max_messages=3)
    with pytest.raises(InvalidMessage) as refused:
        call(memory)
    assert words in str(refused.value)
    assert memory.messages() == []


@pytest.mark.parametrize("store", [InMemoryChatMemoryStore, DjangoChatMemoryStore])
@pytest.mark.parametrize(
    ("given", "words"),
    [(["x" * 999], f"{NO_MESSAGE} 'xxx"), ([None], f"{NO_MESSAGE} None"), (HELLO, NO_LIST)],
)
def test_a_store_takes_a_list_of_messages(db, store, given, words):
    store = store()
    with pytest.raises(InvalidMessage) as refused:
        store.update_messages("a", given)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 200
    assert store.get_messages("a") == []


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: MessageWindowChatMemory(7), "not 7: use str(…), or max_messages=7"),
        (lambda: TokenWindowChatMemory(900), "use str(…), or max_tokens=900"),
        (lambda: MessageWindowChatMemory(["a"]), "not ['a']: use str(…)"),
        (
            lambda: TokenWindowChatMemory(estimator="gpt-4o"),
            "not the name 'gpt-4o': use OpenAiTokenCountEstimator('gpt-4o')",
        ),
        (
            lambda: TokenWindowChatMemory(estimator=OpenAiTokenCountEstimator),
            "use OpenAiTokenCountEstimator(…)",
        ),
        (
            lambda: TokenWindowChatMemory(estimator=5),
            "estimator has no method estimate_token_count_in_message: 5",
        ),
        (
            lambda: MessageWindowChatMemory(store=InMemoryChatMemoryStore),
            "use InMemoryChatMemoryStore(…)",
        ),
        (lambda: MessageWindowChatMemory(store={}), "store has no method get_messages: {}"),
        (lambda: recall([{"role": "user"}], [None]), NO_MESSAGE),
        (lambda: recall("hello", [None]), NO_LIST),
        (lambda: recall_curve([2]), f"{NO_MESSAGE} 2"),
        (lambda: recall([HELLO], [2]), "expected a policy such as MessageWindow(20), not 2"),
        (
            lambda: recall([HELLO], ["message_window:2"]),
            "not 'message_window:2': policy_from_text('message_window:2') reads it",
        ),
        (lambda: recall([HELLO], MessageWindow(2)), "expected a list of policies, not Mess"),
        (lambda: recall([HELLO], "message_window:2"), "expected a list of policies, not 'mess"),
        (lambda: recall_curve([HELLO], "message_window:2"), "policy_from_text('message_window:2')"),
        (lambda: recall([HELLO], [None], terms="INV"), "a list of texts, not 'INV'"),
        (lambda: policy_from_text(None), "None is not a policy: write message_window:20"),
        (lambda: policies_from_text(None), "None is not a policy: write message_window:20"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused(make, error):
    with pytest.raises(InvalidValue) as refused:
        make()
    assert error in str(refused.value)


# One memory for each id


def test_a_provider_has_one_memory_for_each_id():
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, 2, store))
    with ThreadPoolExecutor() as pool:
        assert len(set(map(id, pool.map(memories.get, ["a"] * 20)))) == 1
    first = memories.get("a")
    first.add(HELLO)
    assert memories.get("b") is not first
    assert memories.evict("a")
    assert not memories.evict("a")
    assert memories.get("a") is not first
    assert memories.get("a").messages() == [HELLO]


def test_a_memory_can_be_made_from_another_one():
    def create(name: str) -> MessageWindowChatMemory:
        memory = MessageWindowChatMemory(name)
        if name != "rules":
            memory.set(memories.get("rules").messages())
        return memory

    memories = ChatMemoryProvider(create)
    memories.get("rules").add(HELLO)
    assert memories.get("a").messages() == [HELLO]


@pytest.mark.parametrize("needed", [{"a": "a"}, {"a": "b", "b": "a"}])
def test_a_memory_cannot_be_made_from_itself(needed):
    def create(name: str) -> MessageWindowChatMemory:
        return memories.get(needed[name]) if name in needed else MessageWindowChatMemory(name)

    memories = ChatMemoryProvider(create)
    for _ in range(2):
        with pytest.raises(
            InvalidValue, match="the function create asks the provider for the memory 'a'"
        ):
            memories.get("a")
    needed.clear()
    assert memories.get("a").id == "a"


# Changes of one memory in one process take turns where its store cannot lock it.


class Files:
    """The store of docs/library.md, with three methods, so slow that threads interrupt it."""

    def __init__(self, folder):
        self.folder = folder

    def get_messages(self, memory_id):
        file = self.folder / memory_id
        return messages_from_json(file.read_text(), nulls=False) if file.exists() else []

    def update_messages(self, memory_id, messages):
        (self.folder / memory_id).write_text(messages_to_json(messages))

    def delete_messages(self, memory_id):
        (self.folder / memory_id).unlink(missing_ok=True)


class FileStore(Files, ChatMemoryStore):
    """The same as a subclass; a store need not be one."""


WORDS = [UserMessage(f"{number}") for number in range(60)]


@pytest.fixture(params=[Files, FileStore])
def store(request, tmp_path):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield request.param(tmp_path)
    sys.setswitchinterval(before)


def test_threads_with_memories_of_their_own_lose_nothing(store):
    def add(word: UserMessage) -> None:
        MessageWindowChatMemory("m", 100, store).add(word)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, WORDS))
    assert set(store.get_messages("m")) == set(WORDS)
    MessageWindowChatMemory("m", 100, store).clear()
    assert store.get_messages("m") == []


def test_tasks_with_one_memory_lose_nothing(store):
    memory = MessageWindowChatMemory("m", 100, store)

    async def add_all() -> None:
        await asyncio.gather(*map(memory.aadd, WORDS))

    asyncio.run(add_all())
    assert set(store.get_messages("m")) == set(WORDS)
