"""The contract of every ChatMemoryStore."""

from __future__ import annotations

import pytest

from chatmemory import (
    InMemoryChatMemoryStore,
    InvalidValue,
    MessageWindowChatMemory,
    SingleSlotChatMemoryStore,
    SystemMessage,
    UserMessage,
)
from chatmemory.stores.database import DjangoChatMemoryStore

MESSAGES = [SystemMessage("Be brief."), UserMessage("one"), UserMessage("two")]


@pytest.fixture(
    params=[InMemoryChatMemoryStore, lambda: SingleSlotChatMemoryStore("m"), DjangoChatMemoryStore],
    ids=["in memory", "single slot", "Django"],
)
def store(request, db):
    return request.param()


def test_an_unknown_memory_is_empty(store):
    assert store.get_messages("m") == []


def test_it_returns_the_stored_messages(store):
    store.update_messages("m", MESSAGES)
    assert store.get_messages("m") == MESSAGES


def test_it_keeps_a_copy(store):
    messages = list(MESSAGES)
    store.update_messages("m", messages)
    messages.clear()
    store.get_messages("m").clear()
    assert store.get_messages("m") == MESSAGES


def test_an_empty_list_empties_it(store):
    store.update_messages("m", MESSAGES)
    store.update_messages("m", [])
    assert store.get_messages("m") == []


def test_deleting_twice_is_not_an_error(store):
    store.update_messages("m", MESSAGES)
    store.delete_messages("m")
    store.delete_messages("m")
    assert store.get_messages("m") == []


def test_a_transaction_that_raises_stores_nothing(store):
    memory = MessageWindowChatMemory("m", 2, store)
    memory.add(UserMessage("one"))

    def decide(window):
        list(window)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.transact("m", decide)
    assert store.get_messages("m") == [UserMessage("one")]


def test_a_single_slot_serves_one_memory():
    with pytest.raises(InvalidValue, match="'m', not 'other'"):
        SingleSlotChatMemoryStore("m").get_messages("other")
