"""Defines a room: a plug-in feature, which adds to writing and reading by its hooks.

A room can be removed with its folders. It is a Django application whose configuration is a `Room`.
The kernel (this package) imports no room. It calls the hooks of the installed rooms in the order of
INSTALLED_APPS; docs/rooms.md describes each hook. No hook changes a decision of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
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
    """The rows of a step, or of a new conversation without a step, before they are written.

    `memory` is the conversation's own row, already up to date. A stay is a period of a message in
    memory. `ended` has a pair for each stay that the step ends, in order: the number of the stay,
    and the reason why the message left. `redacted` is the message whose text the step erases.
    """

    memory: Memory
    messages: Sequence[InsertedMessage] = ()
    stays: Sequence[InsertedStay] = ()
    steps: Sequence[InsertedStep] = ()
    ended: Sequence[tuple[int, str]] = ()
    redacted: Message | None = None


@dataclass(frozen=True)
class Erased:
    """The texts of a conversation that are being erased: the texts of the messages `seqs`, or the
    whole conversation if `seqs` is None.
    """

    memory_id: str
    seqs: Sequence[int] | None = None


@dataclass(frozen=True)
class ListColumn:
    """A column of the overview; `words` is its heading, and a `SiteRoom` provides its cells.

    With `sort_by`, lists can be sorted by the column, highest first, and the `ordering` of the API
    accepts the column's `name`. `sort_by` is a column of `Memory` or of a derived row, such as
    `keptincidents__forced`. Conversations without the derived row count as 0.
    """

    name: str
    words: str
    sort_by: str = ""


class Room(AppConfig):
    """The Django configuration of a room (plug-in feature). Subclasses override attributes and
    hooks.

    A room in the package `rooms.parcels` has the name `parcels` and the app label
    `chatmemory_parcels`. The configuration is loaded before the models, so import the room's
    modules inside of its methods.
    """

    default_auto_field = "django.db.models.BigAutoField"
    needs: tuple[str, ...] = ()  # names of rooms
    packages: Mapping[str, str] = {}  # that it needs, each with a module of the package
    services: Mapping[str, str] = {}  # additions to `chatmemory.services`, each with its module
    api_urls: str = ""  # a module whose `urlpatterns` go below /api/v1/
    flags: Sequence[Flag] = ()
    columns: Sequence[ListColumn] = ()

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        self.room = app_name.rpartition(".")[2]
        self.label = f"chatmemory_{self.room}"
        super().__init__(app_name, app_module)

    def keepers(self) -> Iterable[Keeper]:
        """Return the room's keepers, which derive rows from ledgers after the commit of a
        change.
        """
        return ()

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        """Return the providers to which a conversation is sent, each with the names of its models.
        For an empty id, return the providers of all conversations.

        None if nobody has chosen providers.
        """
        return None

    def sealing(self, change: Recorded) -> None:
        """Fill in the digests of a step that is not written yet. An exception undoes the whole
        change.
        """

    def erasing(self, erased: Erased) -> None:
        """Erase the room's copies of the erased texts, in the same transaction. An exception undoes
        the erasure.

        Rows with a foreign key to a deleted conversation need no hook: they are deleted with it.
        """

    def incidents(self, memory_id: str) -> Iterable[Incident]:
        """Return the incidents of a conversation: facts and tool results that had left memory and
        came up again.
        """
        return ()

    def step_fields(self) -> Mapping[str, Any]:  # serializer fields, of a layer above
        """Return additional serializer fields for the API's response about a step. To find its
        value, a field's method `get_attribute` gets the whole response, including the `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return an object that checks the room's columns and tables while a conversation is
        verified. None if the room has nothing to check.
        """
        return None
