"""Stores that keep messages in this process, without a database."""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.messages.ids import string_id
from chatmemory.messages.message import ChatMessage
from chatmemory.windows.store import ChatMemoryStore, Decide, SingleSlotChatMemoryStore
from chatmemory.windows.transitions import Transition

__all__ = ["InMemoryChatMemoryStore", "SingleSlotChatMemoryStore"]


class InMemoryChatMemoryStore(ChatMemoryStore):
    """A store for any number of memories in this process. Thread-safe."""

    keeps_system_attributes = True

    def __init__(self) -> None:
        self._slots: dict[str, SingleSlotChatMemoryStore] = {}

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        slot = self._slots.get(string_id(memory_id))
        return slot.get_messages(memory_id) if slot else []

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        self._slot(memory_id).update_messages(memory_id, messages)

    def delete_messages(self, memory_id: str) -> None:
        slot = self._slots.get(string_id(memory_id))
        if slot:
            slot.delete_messages(memory_id)

    def transact(self, memory_id: str, decide: Decide) -> Transition:
        return self._slot(memory_id).transact(memory_id, decide)

    def transact_all(self, memory_id: str, decisions: Sequence[Decide]) -> list[Transition]:
        return self._slot(memory_id).transact_all(memory_id, decisions)

    def _slot(self, memory_id: str) -> SingleSlotChatMemoryStore:
        own = SingleSlotChatMemoryStore(string_id(memory_id))
        return self._slots.setdefault(memory_id, own)
