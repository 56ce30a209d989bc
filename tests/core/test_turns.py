"""Changes of one memory in one process take turns where its store cannot lock it."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatmemory import (
    ChatMemoryStore,
    MessageWindowChatMemory,
    UserMessage,
    messages_from_json,
    messages_to_json,
)


class Files(ChatMemoryStore):
    """As docs/library.md has it: with three methods, and slower than a thread is interrupted."""

    def __init__(self, folder):
        self.folder = folder

    def get_messages(self, memory_id):
        file = self.folder / memory_id
        return messages_from_json(file.read_text(), nulls=False) if file.exists() else []

    def update_messages(self, memory_id, messages):
        (self.folder / memory_id).write_text(messages_to_json(messages))

    def delete_messages(self, memory_id):
        (self.folder / memory_id).unlink(missing_ok=True)


@pytest.fixture
def store(tmp_path):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield Files(tmp_path)
    sys.setswitchinterval(before)


WORDS = [UserMessage(f"{number}") for number in range(60)]


def is_complete(store) -> bool:
    return set(store.get_messages("m")) == set(WORDS)


def test_threads_with_memories_of_their_own_lose_nothing(store):
    def add(word: UserMessage) -> None:
        MessageWindowChatMemory("m", 100, store).add(word)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, WORDS))
    assert is_complete(store)


def test_tasks_with_one_memory_lose_nothing(store):
    memory = MessageWindowChatMemory("m", 100, store)

    async def add_all() -> None:
        await asyncio.gather(*map(memory.aadd, WORDS))

    asyncio.run(add_all())
    assert is_complete(store)
