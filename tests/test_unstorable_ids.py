"""An id that no database can hold is refused wherever one is read."""

from __future__ import annotations

import pytest

from chatmemory import (
    InvalidValue,
    MemoryNotFound,
    MessageWindow,
    MessageWindowChatMemory,
    UnstorableText,
    queries,
    services,
)
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore

pytestmark = [pytest.mark.django_db, pytest.mark.database]

STORE = DjangoChatMemoryStore()
READS = {
    "memory": queries.memory,
    "window": queries.window,
    "history": queries.history,
    "step": lambda memory_id: queries.step(memory_id, 1),
    "copies": lambda memory_id: queries.copies(memory_id, 1),
    "trial": lambda memory_id: queries.trial(memory_id, "key"),
    "default_policy": services.default_policy,
    "branch": lambda memory_id: services.branch(memory_id, "other", []),
    "get_messages": STORE.get_messages,
    "get_window": STORE.get_window,
    "get_history": STORE.get_history,
    "a memory": lambda memory_id: MessageWindowChatMemory(memory_id, 5, store=STORE).messages(),
    "http": lambda memory_id: HttpChatMemoryStore("http://127.0.0.1:9", "t").get_messages(
        memory_id
    ),
}


@pytest.mark.parametrize("memory_id", ["\ud800", "a\x00b"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_it_is_refused(read, memory_id):
    with pytest.raises(UnstorableText, match="a memory id cannot contain NUL or lone surrogates"):
        read(memory_id)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_one_that_is_too_long_is_not_looked_for(read, django_assert_num_queries):
    """Citus would take it for an error in the query."""
    with (
        django_assert_num_queries(0),
        pytest.raises(MemoryNotFound, match=r"aaa'… \(256 characters\): ids have at most 255"),
    ):
        read("a" * 256)


@pytest.mark.parametrize("number", [256, 1000, 70_000])
def test_the_length_of_a_long_id_is_told(number):
    with pytest.raises(InvalidValue, match=rf"not 'aaa.*\({number:,} characters\)"):
        services.create("a" * number, MessageWindow(1))
