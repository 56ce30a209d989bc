from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from chatmemory import ChatMemory, MessageWindowChatMemory
from chatmemory.messages.message import text_of
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore


def texts(messages: Sequence[Any]) -> list[str]:
    return [text_of(message) for message in messages]


@pytest.fixture
def memory_of(db) -> Callable[[int], ChatMemory]:
    """Makes memories with so many messages, in the database of the tests."""
    return lambda limit: MessageWindowChatMemory(uuid4().hex, limit, DjangoChatMemoryStore())


@pytest.fixture(params=["in the database", "over HTTP"])
def large_memory(request) -> Any:
    """A memory with room for all messages, in the project and on a server."""
    if request.param == "in the database":
        yield request.getfixturevalue("memory_of")(20)
        return
    served = request.getfixturevalue("served")
    with HttpChatMemoryStore(served.url, served.token) as store:
        yield MessageWindowChatMemory(uuid4().hex, 20, store)
