"""The hooks by which a room adds to writing and reading: the kernel calls them.

A room is a capability that can be removed with its folders: a Django application whose
configuration is a `Room`. The kernel imports no room. It calls the hooks of the installed ones in
the order of INSTALLED_APPS; docs/rooms.md describes each. No hook changes a decision of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.apps import AppConfig

if TYPE_CHECKING:
    from chatmemory.contradictions import LedgerCheck
    from chatmemory.flag import Flag
    from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep
    from chatmemory.keeper import Keeper
    from chatmemory.models import Memory, Message
    from chatmemory.recall.incidents import Incident


class Recorded(NamedTuple):
    """The rows of a step that is not written yet, or a new conversation without a step. The
    conversation's own row is already up to date with them. `ended` are the stays that the step
    ends, each with its reason, by number, and `redacted` is the message whose text it erases.
    """

    memory: Memory
    messages: Sequence[InsertedMessage] = ()
    stays: Sequence[InsertedStay] = ()
    steps: Sequence[InsertedStep] = ()
    ended: Sequence[tuple[int, str]] = ()
    redacted: Message | None = None


@dataclass(frozen=True)
class Erased:
    """An erasure of the texts of the messages `seqs` of a conversation, or of the conversation as a
    whole if `seqs` is None.
    """

    memory_id: str
    seqs: Sequence[int] | None = None


@dataclass(frozen=True)
class ListColumn:
    """A column of the overview, with its head in `words`.

    With `sort_by`, a column of `Memory` or of a derived row such as `keptincidents__forced`, lists
    can be sorted by it, the most first; the API's `ordering` then has the `name`. Rows that have
    none count as 0. A `SiteRoom` says what its cells are.
    """

    name: str
    words: str
    sort_by: str = ""


class Room(AppConfig):
    """The configuration of a room.

    Its name is the last part of the name of its module. Its label is this name with the prefix
    `chatmemory_`. Methods import the modules of the room when called, because the configuration is
    loaded before the models.
    """

    default_auto_field = "django.db.models.BigAutoField"
    needs: tuple[str, ...] = ()  # names of rooms
    packages: Mapping[str, str] = {}  # that it needs, each with a module of the package
    services: Mapping[str, str] = {}  # additions to `chatmemory.services`, each with its module
    api_urls: str = ""  # a module whose `urlpatterns` go below /api/v1/
    flags: Sequence[Flag] = ()
    columns: Sequence[ListColumn] = ()

    def __init__(self, app_name: str, app_module: Any) -> None:
        self.room = app_name.rpartition(".")[2]
        self.label = f"chatmemory_{self.room}"
        super().__init__(app_name, app_module)

    def keepers(self) -> Iterable[Keeper]:
        """Return the keepers, which derive rows from ledgers after the commit of a change."""
        return ()

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        """Return the providers of a conversation, or of any one if the id is empty, each with its
        models; None if nobody has chosen.
        """
        return None

    def sealing(self, change: Recorded) -> None:
        """Fill in digests of a step that is not written yet. An exception undoes the change."""

    def erasing(self, erased: Erased) -> None:
        """Erase the room's copies of a text, in the transaction of the erasure. An exception undoes
        it. Rows that refer to a conversation are deleted with it.
        """

    def incidents(self, memory_id: str) -> Iterable[Incident]:
        """Return the incidents, in which something left memory and came up again."""
        return ()

    def step_fields(self) -> Mapping[str, Any]:
        """Return additional serializer fields for the API's answer about a step. Their
        `get_attribute` gets the answer, with the `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return a check of the room's columns and tables for a replay of the ledger, or None."""
        return None
