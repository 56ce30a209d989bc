"""The contract of every ChatMemoryStore."""

from __future__ import annotations

from uuid import uuid4

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
from chatmemory.stores.http import HttpChatMemoryStore

MESSAGES = [SystemMessage("Be brief."), UserMessage("one"), UserMessage("two")]


STORES = {
    "in memory": lambda memory_id, request: InMemoryChatMemoryStore(),
    "single slot": lambda memory_id, request: SingleSlotChatMemoryStore(memory_id),
    "Django": lambda memory_id, request: DjangoChatMemoryStore(),
}
OVER_HTTP = {"HTTP": lambda memory_id, request: request.getfixturevalue("http_store")}


@pytest.fixture
def http_store(served):
    with HttpChatMemoryStore(served.url, served.token) as store:
        yield store


@pytest.fixture
def memory_id() -> str:
    """An id of this test's own, since tests share a server."""
    return f"acme/{uuid4().hex} ü"


@pytest.fixture(params=STORES | OVER_HTTP)
def store(request, db, memory_id):
    return (STORES | OVER_HTTP)[request.param](memory_id, request)


@pytest.fixture(params=STORES)
def transactional(request, db, memory_id):
    return STORES[request.param](memory_id, request)


def test_an_unknown_memory_is_empty(store, memory_id):
    assert store.get_messages(memory_id) == []


def test_it_returns_the_stored_messages(store, memory_id):
    store.update_messages(memory_id, MESSAGES)
    assert store.get_messages(memory_id) == MESSAGES


def test_it_keeps_a_copy(store, memory_id):
    messages = list(MESSAGES)
    store.update_messages(memory_id, messages)
    messages.clear()
    store.get_messages(memory_id).clear()
    assert store.get_messages(memory_id) == MESSAGES


def test_an_empty_list_empties_it(store, memory_id):
    store.update_messages(memory_id, MESSAGES)
    store.update_messages(memory_id, [])
    assert store.get_messages(memory_id) == []


@pytest.mark.parametrize("call", ["get_messages", "update_messages", "delete_messages"])
def test_an_id_that_is_no_string_is_refused(store, call):
    arguments = [MESSAGES] if call == "update_messages" else []
    with pytest.raises(InvalidValue, match=r"must be a string, not 42: use str"):
        getattr(store, call)(42, *arguments)


def test_deleting_twice_is_not_an_error(store, memory_id):
    store.update_messages(memory_id, MESSAGES)
    store.delete_messages(memory_id)
    store.delete_messages(memory_id)
    assert store.get_messages(memory_id) == []


def test_a_memory_keeps_its_messages_in_it(store, memory_id):
    for message in MESSAGES:
        MessageWindowChatMemory(memory_id, 2, store).add(message)
    memory = MessageWindowChatMemory(memory_id, 2, store)
    assert memory.messages() == [MESSAGES[0], MESSAGES[2]]
    memory.clear()
    assert memory.messages() == []


def test_a_transaction_that_raises_stores_nothing(transactional, memory_id):
    memory = MessageWindowChatMemory(memory_id, 2, transactional)
    memory.add(UserMessage("one"))

    def decide(window):
        list(window)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        transactional.transact(memory_id, decide)
    assert transactional.get_messages(memory_id) == [UserMessage("one")]


def test_a_single_slot_serves_one_memory():
    with pytest.raises(InvalidValue, match="'m', not 'other'"):
        SingleSlotChatMemoryStore("m").get_messages("other")
