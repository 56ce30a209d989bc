"""The default store of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.given import chat_messages
from chatmemory.core.ids import string_id
from chatmemory.core.messages import ChatMessage
from chatmemory.core.store import ChatMemoryStore, Decide
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, Window


class SingleSlotChatMemoryStore(ChatMemoryStore):
    """A thread-safe store for the messages of one memory in this process.

    It keeps a window instead of a list, so that the cost of an add depends on the messages that it
    evicts and not on the length of the window. Raises InvalidValue for any other id.
    """

    def __init__(self, memory_id: str) -> None:
        self._memory_id = memory_id
        self._window = Window()
        self._lock = RLock()

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        self._check(memory_id)
        with self._lock:
            return [entry.message for entry in self._window if entry.message is not None]

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        self._check(memory_id)
        window = Window(map(Entry.of, chat_messages(messages)))
        with self._lock:
            self._window = window

    def delete_messages(self, memory_id: str) -> None:
        self.update_messages(memory_id, ())

    def transact(self, memory_id: str, decide: Decide) -> Transition:
        self._check(memory_id)
        with self._lock:
            transition = decide(self._window)
            transition.apply_to(self._window)
            return transition

    def _check(self, memory_id: str) -> None:
        if string_id(memory_id) != self._memory_id:
            raise InvalidValue(f"this store serves memory {self._memory_id!r}, not {memory_id!r}")
