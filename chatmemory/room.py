"""Defines a room: a part of the product that an installation can leave out.

A room is a Django application whose configuration is a `Room`. The kernel (this package) imports no
room, but calls the hooks of the installed rooms, in the order of INSTALLED_APPS. No hook changes a
decision of the kernel. docs/rooms.md describes each hook.
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

    - `memory`: the row of the conversation, already changed.
    - `messages`, `stays`, `steps`: the rows to insert.
    - `ended`: for each stay that the step ends, the number of the stay and the reason, in order.
    - `redacted`: the message whose text the step erases, or None.
    """

    memory: Memory
    messages: Sequence[InsertedMessage] = ()
    stays: Sequence[InsertedStay] = ()
    steps: Sequence[InsertedStep] = ()
    ended: Sequence[tuple[int, str]] = ()
    redacted: Message | None = None


@dataclass(frozen=True)
class Erased:
    """What is being erased of a conversation: the texts of the messages `seqs`, or everything if
    `seqs` is None.
    """

    memory_id: str
    seqs: Sequence[int] | None = None


@dataclass(frozen=True)
class ListColumn:
    """A column of the overview. `words` is its heading; a `SiteRoom` makes its cells.

    With `sort_by`, lists can be sorted by the column, highest first. In the API, `name` names the
    column to sort by. `sort_by` is a column of `Memory` or of a derived row, such as
    `keptincidents__forced`. Without the derived row, a conversation counts as 0.
    """

    name: str
    words: str
    sort_by: str = ""


class Room(AppConfig):
    """The Django configuration of a room. A subclass overrides attributes and hooks.

    - `needs`: the names of other rooms that must be installed.
    - `packages`: the packages that must be installed, each with one of its modules.
    - `services`: the names that the room adds to `chatmemory.services`, each with its module.
    - `api_urls`: the module whose `urlpatterns` go below `/api/v1/`; "" for none.
    - `flags`, `columns`: the causes and the columns that the room adds to the overview.

    A room in the package `rooms.parcels` has the name `parcels` and the app label
    `chatmemory_parcels`. Import the room's modules inside of methods, because the configuration is
    loaded before the models.
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
        """Return the room's keepers, which derive rows after a change."""
        return ()

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        """Return the providers to which a conversation is sent, each with the names of its models.
        For the empty id, those of all conversations.

        None if the room does not know them.
        """
        return None

    def sealing(self, change: Recorded) -> None:
        """Fill in the digests of a step that is not written yet. An exception undoes the whole
        change.
        """

    def erasing(self, erased: Erased) -> None:
        """Erase the room's copies of the erased texts, in the same transaction. An exception undoes
        the erasure.

        Rows with a foreign key to the conversation are deleted with it, and need no hook.
        """

    def incidents(self, memory_id: str) -> Iterable[Incident]:
        """Return the incidents of a conversation: facts and tool results that had left memory and
        came up again.
        """
        return ()

    def step_fields(self) -> Mapping[str, Any]:  # serializer fields, of a layer above
        """Return serializer fields to add to the API's response about a step, by name.

        The method `get_attribute` of a field gets the whole response, which has the `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return an object that checks the room's columns and tables while a conversation is
        verified. None if there is nothing to check.
        """
        return None
