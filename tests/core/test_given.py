"""What cannot be stored is refused where it is given, with what to give instead."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    ChatMemoryStore,
    InMemoryChatMemoryStore,
    InvalidMessage,
    InvalidValue,
    MessageWindowChatMemory,
    OpenAiTokenCountEstimator,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    UserMessage,
    messages_to_json,
)
from chatmemory.stores.database import DjangoChatMemoryStore

HELLO = UserMessage("hello")
NO_MESSAGE = "a chat message such as UserMessage('Hello') is wanted, not"
NO_LIST = "a list of chat messages is wanted, not"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda memory: memory.add("hello"), f"{NO_MESSAGE} 'hello'"),
        (lambda memory: memory.add([HELLO]), "not a list: give each of its messages"),
        (lambda memory: memory.extend("hello"), f"{NO_LIST} 'hello'"),
        (lambda memory: memory.extend(HELLO), f"{NO_LIST} UserMessage("),
        (lambda memory: memory.set({"role": "user"}), f"{NO_LIST} {{'role': 'user'}}"),
        (lambda memory: memory.set(["hello"]), f"{NO_MESSAGE} 'hello'"),
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


def test_a_list_is_written_as_json():
    with pytest.raises(InvalidMessage, match=NO_LIST):
        messages_to_json(HELLO)
    assert messages_to_json((HELLO,)) == messages_to_json(iter([HELLO]))


@pytest.mark.parametrize(
    "make", [lambda: UserMessage(5), lambda: AiMessage(None, ToolExecutionRequest.of("f", {}))]
)
def test_lists_of_a_message_are_lists(make):
    with pytest.raises(InvalidMessage, match="takes a list, not"):
        make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "gpt-4o"}, r"use OpenAiTokenCountEstimator\('gpt-4o'\)"),
        ({"estimator": OpenAiTokenCountEstimator}, r"use OpenAiTokenCountEstimator\(…\)"),
        ({"estimator": 5}, "estimator has no method estimate_token_count_in_message: 5"),
        ({"store": InMemoryChatMemoryStore}, r"use InMemoryChatMemoryStore\(…\)"),
        ({"store": {}}, "store has no method get_messages: {}"),
    ],
)
def test_a_store_and_an_estimator_are_objects(options, words):
    with pytest.raises(InvalidValue, match=words):
        TokenWindowChatMemory(max_tokens=10, **options)


def test_a_store_need_not_be_a_subclass():
    class Own:
        get_messages = ChatMemoryStore.get_messages
        update_messages = ChatMemoryStore.update_messages
        delete_messages = ChatMemoryStore.delete_messages

    MessageWindowChatMemory(max_messages=3, store=Own())
