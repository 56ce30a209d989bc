"""The store with a whole history: LangChain4j's ChatMemoryStore in Django models.

    store = DjangoChatMemoryStore()
    memory = MessageWindowChatMemory(id="my-order-1", max_messages=20, store=store)

Memories of this library use `transact`, which locks the conversation, and records the policy and
the reason of each eviction.

Other clients can use the three methods of LangChain4j's interface. If two clients write at the same
time, memory has the list that was written last. The history has the messages of both clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from chatmemory.exceptions import MemoryNotFound, NoRoomBesidePins
from chatmemory.messages.estimators import TokenCountEstimator, estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.quotes import Query, Quotes
from chatmemory.windows.store import ChatMemoryStore, Decide
from chatmemory.windows.transitions import Transition
from chatmemory.windows.window import Window

try:
    from asgiref.sync import sync_to_async
    from django.core.exceptions import SynchronousOnlyOperation
    from django.db import DatabaseError, InterfaceError

    from chatmemory.conf import configuration
    from chatmemory.database_errors import outage
    from chatmemory.ledger import protocol
    from chatmemory.ledger.recorder import Recorder
    from chatmemory.ledger.transaction import locked, unsaved_memory
    from chatmemory.ledger.validation import check_actor, check_storable_limit, storable_messages
    from chatmemory.reading import history, quoting
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("asgiref", "django"):
        raise
    raise ImportError(
        "DjangoChatMemoryStore needs Django: pip install '.[django]' in a checkout"
    ) from error

P = ParamSpec("P")
T = TypeVar("T")


def explained(call: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that its error in a database outage gets a note, such as `chatmemory:
    the database is busy: …`. If the function is called from async code, Django's error gets a note
    about the async methods.
    """

    @wraps(call)
    def noting(*args: P.args, **options: P.kwargs) -> T:
        try:
            return call(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            if found := outage(error):
                error.add_note(f"chatmemory: {found}")
            raise
        except SynchronousOnlyOperation as error:
            error.add_note("chatmemory: await the method whose name begins with an a: aadd for add")
            raise

    return noting


def _recorded(recorder: Recorder, decide: Decide) -> Transition:
    try:
        transition = decide(recorder.window)
    except NoRoomBesidePins:
        if not recorder.give_way():
            raise
        transition = decide(recorder.window)
    check_storable_limit(transition.policy)
    storable_messages([each.message for each in transition.arrivals if each.message])
    recorder.record(transition)
    return transition


class DjangoChatMemoryStore(ChatMemoryStore):
    """A store in the project's database. `actor` says who makes the changes, and is recorded with
    each step.

    Raises InvalidValue unless `actor` is a string of up to 255 characters that can be stored.
    """

    keeps_system_attributes = True
    keeps_index = True  # its recorder renews the index (see `recall.index`)

    def __init__(self, actor: str = "") -> None:
        check_actor(actor)
        self._actor = actor

    @property
    def estimator(self) -> TokenCountEstimator:
        """The estimator for memories without their own estimator: the estimator in the setting
        `ESTIMATOR`.
        """
        return estimator_for(configuration().ESTIMATOR)

    @explained
    def get_history(self, memory_id: str) -> list[ChatMessage]:
        """Return all messages in the history of a conversation. Raises MemoryNotFound."""
        return history.all_messages(memory_id)

    @explained
    def search_history(self, memory_id: str, query: Query) -> Quotes:
        """Return quotes of the messages in a conversation's history that match a query. For an
        unknown id, the result has no hits.
        """
        try:
            return quoting.search_history(memory_id, query)
        except MemoryNotFound:
            return Quotes()

    @explained
    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        """Return all messages that are stored in memory, including messages over the limit. [] for
        an unknown id.
        """
        return protocol.get_messages(memory_id)

    @explained
    def get_window(self, memory_id: str) -> Window:
        """Return the messages of `get_messages` as a window, with their pins and token counts."""
        return protocol.get_window(memory_id)

    @explained
    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        """Replace the messages in memory by a list, which is not trimmed. The ledger records which
        messages came, moved and left.
        """
        protocol.update_messages(memory_id, messages, actor=self._actor)

    @explained
    def delete_messages(self, memory_id: str) -> None:
        """Remove all messages from memory. They stay in the history."""
        protocol.delete_messages(memory_id, actor=self._actor)

    @explained
    def transact(self, memory_id: str, decide: Decide) -> Transition:
        """Lock the conversation, pass its window to `decide`, and store the transition that
        `decide` returns. If `decide` raises, nothing is stored.

        An unknown id creates a conversation.
        """
        return self.transact_all(memory_id, [decide])[0]

    @explained
    def transact_all(self, memory_id: str, decisions: Sequence[Decide]) -> list[Transition]:
        """Make several changes in one transaction, each as `transact` does, and return their
        transitions. If one of `decisions` raises, nothing is stored.
        """
        create = partial(unsaved_memory, memory_id)
        with locked(memory_id, actor=self._actor, create=create) as recorder:
            return [_recorded(recorder, decide) for decide in decisions]

    # The same for asyncio. The memories' own async methods use `to_thread`

    async def aget_history(self, memory_id: str) -> list[ChatMessage]:
        return await self.to_thread(self.get_history, memory_id)

    async def asearch_history(self, memory_id: str, query: Query) -> Quotes:
        return await self.to_thread(self.search_history, memory_id, query)

    async def aget_messages(self, memory_id: str) -> list[ChatMessage]:
        return await self.to_thread(self.get_messages, memory_id)

    async def aget_window(self, memory_id: str) -> Window:
        return await self.to_thread(self.get_window, memory_id)

    async def aupdate_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        await self.to_thread(self.update_messages, memory_id, messages)

    async def adelete_messages(self, memory_id: str) -> None:
        await self.to_thread(self.delete_messages, memory_id)

    async def atransact(self, memory_id: str, decide: Decide) -> Transition:
        return await self.to_thread(self.transact, memory_id, decide)

    async def atransact_all(self, memory_id: str, decisions: Sequence[Decide]) -> list[Transition]:
        return await self.to_thread(self.transact_all, memory_id, decisions)

    async def to_thread(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a blocking call in the thread that has the database connection of this asyncio task.
        Return the result of the call.
        """
        return await sync_to_async(call)(*args, **options)
