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
    """Keeps one list of messages per memory id.

    Subclass it to keep messages anywhere. The three methods are LangChain4j's: through them,
    concurrent writers to one memory are last-writer-wins. A store that can do better offers
    `transact` as well (see `TransactionalStore`), and memories use it wherever it is there.
    """

    @abstractmethod
    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        """The messages in order; [] for an unknown id, which creates nothing."""

    @abstractmethod
    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        """Replace the whole list."""

    @abstractmethod
    def delete_messages(self, memory_id: str) -> None:
        """Forget the list; an unknown id is no error."""


@runtime_checkable
class TransactionalStore(Protocol):
    """A store that can hold still while a decision is made.

    `transact` locks the memory, hands its window to `decide`, keeps the outcome and returns it. If
    `decide` raises, nothing is kept. A store that shows tokens has an `estimator` too, by which
    memories without one of their own count.
    """

    def transact(self, memory_id: str, decide: Decide) -> Transition: ...
