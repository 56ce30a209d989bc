"""What cannot be stored is refused where it is given, with what to give instead."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    ChatMemoryStore,
    InMemoryChatMemoryStore,
    InvalidMessage,
    InvalidValue,
    MessageWindow,
    MessageWindowChatMemory,
    OpenAiTokenCountEstimator,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    UserMessage,
    messages_to_json,
    policies_from_text,
    policy_from_text,
    recall,
    recall_curve,
)
from chatmemory.stores.database import DjangoChatMemoryStore

HELLO = UserMessage("hello")
NO_MESSAGE = "a chat message such as UserMessage('Hello') is wanted, not"
NO_LIST = "a list of chat messages is wanted, not"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda memory: memory.add("hello"), f"{NO_MESSAGE} 'hello'"),
        (
            lambda memory: memory.add({"role": "user", "content": "hello"}),
            "parse_messages([…], 'openai_chat') of chatmemory.formats reads it",
        ),
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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: recall([{"role": "user"}], [None]), NO_MESSAGE),
        (lambda: recall("hello", [None]), NO_LIST),
        (lambda: recall_curve([2]), f"{NO_MESSAGE} 2"),
        (lambda: recall([HELLO], [2]), "a policy such as MessageWindow(20) is wanted, not 2"),
        (
            lambda: recall([HELLO], ["message_window:2"]),
            "not 'message_window:2': policy_from_text('message_window:2') reads it",
        ),
        (lambda: recall([HELLO], MessageWindow(2)), "a list of policies is wanted, not Mess"),
        (lambda: recall([HELLO], "message_window:2"), "a list of policies is wanted, not 'mess"),
        (lambda: recall_curve([HELLO], "message_window:2"), "policy_from_text('message_window:2')"),
        (lambda: recall([HELLO], [None], terms="INV"), "a list of texts, not 'INV'"),
        (lambda: policy_from_text(None), "None is not a policy: write message_window:20"),
        (lambda: policies_from_text(None), "None is not a policy: write message_window:20"),
    ],
)
def test_recall_takes_messages_and_policies(call, words):
    with pytest.raises(InvalidValue) as refused:
        call()
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"a": 1}', "ToolExecutionRequest(id, name, arguments) takes JSON text"),
        ([1], "arguments must be a dictionary, not [1]"),
        ({"d": float("nan")}, "JSON has no NaN and no Infinity"),
        ({"d": [float("inf")]}, "JSON has no NaN and no Infinity"),
    ],
)
def test_arguments_of_a_call_are_a_dictionary(arguments, words):
    with pytest.raises(InvalidMessage) as refused:
        ToolExecutionRequest.of("f", arguments)
    assert words in str(refused.value)
