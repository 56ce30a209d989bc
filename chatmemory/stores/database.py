"""The store that keeps everything: Django models behind LangChain4j's ChatMemoryStore.

    store = DjangoChatMemoryStore()
    memory = MessageWindowChatMemory(id="order-7741", max_messages=20, store=store)

Memories of this library use `transact`: locked, with the policy and every reason recorded. Through
the three plain methods any other client can use it too; history is then complete for all that
reached the store, and concurrent writers are last-writer-wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatmemory.conf import configuration
from chatmemory.core.estimators import TokenCountEstimator, estimator_for
from chatmemory.core.messages import ChatMessage
from chatmemory.core.store import ChatMemoryStore, Decide
from chatmemory.core.transitions import Transition
from chatmemory.services import protocol


class DjangoChatMemoryStore(ChatMemoryStore):
    """Keeps conversations in the project's database; `actor` is recorded with every step."""

    def __init__(self, actor: str = "") -> None:
        self._actor = actor

    @property
    def estimator(self) -> TokenCountEstimator:
        """Counts tokens for memories that have no estimator of their own."""
        return estimator_for(configuration().ESTIMATOR)

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        """The open stays in order, untrimmed; [] for an unknown id."""
        return protocol.get_messages(memory_id)

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        protocol.update_messages(memory_id, list(messages), actor=self._actor)

    def delete_messages(self, memory_id: str) -> None:
        """Clears the window; the history stays."""
        protocol.delete_messages(memory_id, actor=self._actor)

    def transact(self, memory_id: str, decide: Decide) -> Transition:
        return protocol.transact(memory_id, decide, actor=self._actor)
