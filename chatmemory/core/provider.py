"""The memories of many conversations, made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from chatmemory.core.ids import string_id
from chatmemory.core.memory import ChatMemory


class ChatMemoryProvider:
    """One memory for each id; threads may share it.

        memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
        memories.get("order-7741").add(UserMessage("Where is my parcel?"))

    It is what LangChain4j calls ChatMemoryProvider and ChatMemoryAccess.
    """

    def __init__(self, create: Callable[[str], ChatMemory]) -> None:
        self._create = create
        self._memories: dict[str, ChatMemory] = {}
        self._lock = Lock()

    def get(self, memory_id: str) -> ChatMemory:
        """Return the memory of a conversation, the same object until it is evicted."""
        with self._lock:
            if string_id(memory_id) not in self._memories:
                self._memories[memory_id] = self._create(memory_id)
            return self._memories[memory_id]

    def evict(self, memory_id: str) -> bool:
        """Forget the object of a conversation, and return whether there was one.

        Messages in a store of one's own stay there; a memory without a store loses them.
        """
        with self._lock:
            return self._memories.pop(string_id(memory_id), None) is not None
