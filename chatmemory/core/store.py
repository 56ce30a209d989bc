"""The port through which a memory keeps its messages: LangChain4j's ChatMemoryStore."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from chatmemory.core.messages import ChatMessage
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Window

Decide = Callable[[Window], Transition]


class ChatMemoryStore(ABC):
    """A store of one list of messages per memory id.

    Subclass it to keep messages anywhere. The three methods are LangChain4j's. If several processes
    write to one memory, the last one wins; within one process, memories with the same store object
    take turns. A store that can lock a memory implements `transact` as well (see
    `TransactionalStore`), and memories then use it.
    """

    @abstractmethod
    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        """Return the messages in order; [] for an unknown id, which is not created."""

    @abstractmethod
    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        """Replace the whole list."""

    @abstractmethod
    def delete_messages(self, memory_id: str) -> None:
        """Remove all messages. An unknown id is not an error."""


@runtime_checkable
class TransactionalStore(Protocol):
    """A store that locks a memory while a change is decided.

    `transact` locks the memory, passes its window to `decide`, stores the resulting transition and
    returns it. If `decide` raises, nothing is stored. A store that shows tokens also has an
    `estimator`, which memories without an estimator of their own use. A store whose connections
    belong to threads has an async method `to_thread(call, *args)`, as `asyncio.to_thread`.
    """

    def transact(self, memory_id: str, decide: Decide) -> Transition: ...


@runtime_checkable
class WindowStore(Protocol):
    """A store that knows which messages are pinned, and has counted their tokens.

    `get_window` returns the messages of `get_messages` as a window, whose entries have their
    messages.
    """

    def get_window(self, memory_id: str) -> Window: ...
