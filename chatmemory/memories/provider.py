"""Provides memory objects: for one conversation, always the same object."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from chatmemory.exceptions import InvalidValue
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.ids import string_id


class ChatMemoryProvider:
    """Creates a memory object for each conversation, and then always returns this object.
    Thread-safe.

    memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
    memories.get("order-7741").add(UserMessage("Where is my parcel?"))

    Does the work of LangChain4j's ChatMemoryProvider and ChatMemoryAccess.
    """

    def __init__(self, create: Callable[[str], ChatMemory]) -> None:
        self._create = create
        self._memories: dict[str, ChatMemory] = {}
        self._begun: set[str] = set()
        self._lock = RLock()  # `create` may ask for other memories

    def get(self, memory_id: str) -> ChatMemory:
        """Return the memory of a conversation. It is the same object until `evict` is called.

        The function `create` makes a memory at the first call. Raises InvalidValue if `create`
        calls `get` for the memory that `create` is still making.
        """
        with self._lock:
            if string_id(memory_id) not in self._memories:
                self._memories[memory_id] = self._made(memory_id)
            return self._memories[memory_id]

    def _made(self, memory_id: str) -> ChatMemory:
        if memory_id in self._begun:
            raise InvalidValue(
                f"the function create asks the provider for the memory {memory_id!r} while "
                "create is making it: make the memory in create, without get"
            )
        self._begun.add(memory_id)
        try:
            return self._create(memory_id)
        finally:
            self._begun.remove(memory_id)

    def evict(self, memory_id: str) -> bool:
        """Forget the memory object of a conversation. Returns whether there was one.

        Messages in a shared store are kept; a memory without a store loses its messages.
        """
        with self._lock:
            return self._memories.pop(string_id(memory_id), None) is not None
