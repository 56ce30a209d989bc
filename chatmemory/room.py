"""What a room may add to writing and reading: the hooks that the kernel calls.

A room is a capability that can be removed with its folders: a Django application whose
configuration is a `Room`. The kernel imports no room. It asks the installed ones, in the order of
INSTALLED_APPS. A hook never changes what the kernel decides. docs/rooms.md describes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.apps import AppConfig

if TYPE_CHECKING:
    from chatmemory.flags import Flag
    from chatmemory.keeper import Keeper
    from chatmemory.ledger.contradictions import Contradiction, LedgerCheck
    from chatmemory.ledger.inserted import InsertedMessage, InsertedStay, InsertedStep
    from chatmemory.messages.message import ChatMessage
    from chatmemory.models import Memory, Message
    from chatmemory.recall.incidents import Forgotten, Incident


class Recorded(NamedTuple):
    """The new rows of a conversation, whose own row is as it is after them.

    What is to be sealed is one step, or a new conversation without one. `ended` are the numbers and
    the reasons of the stays that it ended, by number, `redacted` the message whose words it erases.
    """

    memory: Memory
    messages: Sequence[InsertedMessage] = ()
    stays: Sequence[InsertedStay] = ()
    steps: Sequence[InsertedStep] = ()
    ended: Sequence[tuple[int, str]] = ()
    redacted: Message | None = None


@dataclass(frozen=True)
class Erased:
    """What is erased of a conversation: the texts of the messages `seqs`; all of it if None."""

    memory_id: str
    seqs: Sequence[int] | None = None


class NextNeed(NamedTuple):
    """The incident for which a message was next needed, and what of it, among those up to step
    `until`.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int


class Room(AppConfig):
    """The configuration of a room: its name is the last part of its module's, and its label is
    that with the prefix `chatmemory_`.

    A room lists its own modules by name, and imports them within its methods: a configuration is
    loaded before the models are.
    """

    default_auto_field = "django.db.models.BigAutoField"
    needs: tuple[str, ...] = ()  # the names of rooms without which this one cannot be
    services: Mapping[str, str] = {}  # the modules of what it adds to `chatmemory.services`
    api_urls: str = ""  # a module whose `urlpatterns` stand below /api/v1/
    flags: Sequence[Flag] = ()

    def __init__(self, app_name: str, app_module: Any) -> None:
        self.room = app_name.rpartition(".")[2]
        self.label = f"chatmemory_{self.room}"
        super().__init__(app_name, app_module)

    def keepers(self) -> Iterable[Keeper]:
        """Return what derives rows from ledgers after the commit of a change."""
        return ()

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        """Return the providers that get a conversation, or with an empty id any of them, with the
        models that are known to be used; None where nobody has chosen.
        """
        return None

    def sealing(self, change: Recorded) -> None:
        """Fill in digests of a step that is not written yet. An exception undoes the change."""

    def recording(self, change: Recorded) -> None:
        """Index new rows, in the transaction that has written them. An exception undoes it."""

    def erasing(self, erased: Erased) -> None:
        """Erase what the room has of these words, in the transaction of an erasure.

        Rows of the room that refer to the conversation itself are deleted with it. An exception
        undoes the erasure.
        """

    def incidents(self, memory_id: str) -> Iterable[Incident]:
        """Return what left the memory of a conversation and came up again."""
        return ()

    def next_need(
        self,
        memory: Memory,
        seq: int,
        message: ChatMessage,
        left_step: int,
        at: int,
        asked: Mapping[str, str],
        read: dict[str, Any],
    ) -> NextNeed | None:
        """Return when a message that left at a step was next needed, as seen at step `at`; None if
        nothing is known. `asked` are the parameters of rooms in the address, and `read` has what
        rooms have read for the page.
        """
        return None

    def step_fields(self) -> Mapping[str, Any]:
        """Return fields of the API's answer about a step, by name. The `get_attribute` of a field
        gets that answer, with the `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return what checks the room's columns and tables while a ledger is replayed; or None."""
        return None

    def verify_head(self, memory_id: str, step: int, head: str) -> Contradiction | None:
        """Return what contradicts a digest that was kept elsewhere, in hexadecimal; or None.

        `manage.py verify_memories --heads` calls it.
        """
        return None

    def repairing(self, memory_id: str) -> int:
        """Put into the room's index what is missing of a conversation; return how much that was.

        `manage.py verify_memories --repair-index` calls it.
        """
        return 0
