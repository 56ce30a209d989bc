"""The private store of a memory that was given none."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import ChatMessage
from chatmemory.core.store import ChatMemoryStore, Decide
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, Window


class SingleSlotChatMemoryStore(ChatMemoryStore):
    """Keeps the messages of one memory in this process; safe to share between threads.

    It keeps a window rather than a list, so that an add costs what it evicts, however long the
    window. Any other id raises InvalidValue.
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
        window = Window(map(Entry.of, messages))
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
        if memory_id != self._memory_id:
            raise InvalidValue(f"this store serves memory {self._memory_id!r}, not {memory_id!r}")
