"""The interface of stores that keep a memory's messages (LangChain4j's ChatMemoryStore), and the
default store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Lock, RLock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.ids import string_id
from chatmemory.messages.message import ChatMessage, chat_messages
from chatmemory.windows.transitions import Transition
from chatmemory.windows.window import Entry, Window

Decide = Callable[[Window], Transition]


class ChatMemoryStore(ABC):
    """A store of one list of messages per memory id.

    Subclass it to keep messages anywhere. The three abstract methods are LangChain4j's. Within one
    process, changes to a memory run one after the other if they use the same store object. If
    several processes write to one memory, the last write wins.

    `keeps_system_attributes` is True for a store that keeps the attributes of system messages.
    LangChain4j has no such attributes. If the value is False, a memory reports that these
    attributes are lost.

    A store may have these further members, which memories then use:

    - `transact(memory_id, decide)` locks the memory and passes its window to `decide`, which
      returns a transition. The transition is stored and returned. If `decide` raises, nothing is
      stored.
    - `transact_all(memory_id, decisions)` does the same for several `decide` functions: all changes
      are stored, or none.
    - `get_window(memory_id)` returns the messages as a window, with their pins and tokens.
    - `get_history(memory_id)` returns the whole history.
    - `estimator` counts the tokens for memories without their own estimator.
    - `to_thread(call, *args)`, an async method, runs a call in a thread that may use the store's
      connection.
    """

    keeps_system_attributes: ClassVar[bool] = False

    @abstractmethod
    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        """Return the messages of a memory in order; [] for an unknown id. An unknown memory is not
        created.
        """

    @abstractmethod
    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        """Replace the whole list of messages of a memory."""

    @abstractmethod
    def delete_messages(self, memory_id: str) -> None:
        """Remove all messages of a memory. An unknown id is not an error."""


class SingleSlotChatMemoryStore(ChatMemoryStore):
    """A thread-safe store that keeps the messages of a single memory in this process.

    The constructor takes the id of this memory. The methods raise InvalidValue for any other id.
    The store keeps a window instead of a list, so that adds do not become slower as the window
    grows.
    """

    keeps_system_attributes = True

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

    def transact_all(self, memory_id: str, decisions: Sequence[Decide]) -> list[Transition]:
        """Make several changes, and return their transitions. If one of the `decisions` raises, no
        change is made.
        """
        with self._lock:
            window = self._window
            before = Window(list(window), window.totals, window.counted_by, window.measured_by)
            try:
                return [self.transact(memory_id, decide) for decide in decisions]
            except BaseException:
                self._window = before
                raise

    def _check(self, memory_id: str) -> None:
        if string_id(memory_id) != self._memory_id:
            raise InvalidValue(
                f"this store belongs to the memory {self._memory_id!r}, but is used for "
                f"{memory_id!r}: give each memory its own store"
            )


# By store and memory id. A memory keeps its store and its lock, so that a new store cannot get the
# id of one that is gone.
_change_locks: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()  # RLocks
_guard = Lock()


def change_lock_of(store: object, memory_id: str) -> Any:  # an RLock: its class has no public name
    """Return the lock (an RLock) that serializes changes to a memory. All memories with this store
    object and id share the lock.
    """
    with _guard:
        return _change_locks.setdefault((id(store), memory_id), RLock())
