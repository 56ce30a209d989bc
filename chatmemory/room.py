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
    """The rows of a step before they are written. For a new conversation without a step, only
    `memory` is set.

    - `memory`: the row of the conversation, already changed.
    - `messages`, `stays`, `steps`: the rows to insert.
    - `ended`: the stays that the step ends, sorted by number. Each item is the number of the stay
      and the reason.
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
    """A column of the overview. `words` is its heading. The method `cells` of a `SiteRoom` returns
    its cells.

    - `sort_by`: the database column by which conversations are sorted; "" if the overview cannot be
      sorted by this column. The database column belongs to `Memory` or to a derived row, such as
      `keptincidents__forced`. A conversation without the derived row is sorted as 0.
    - `name`: the name of the column, also in the API's parameter `ordering`.
    """

    name: str
    words: str
    sort_by: str = ""


class Room(AppConfig):
    """The Django configuration of a room. A subclass overrides attributes and hooks.

    - `needs`: the names of other rooms that must be installed.
    - `packages`: the Python packages that must be installed. Each name of a package maps to an
      importable module of the package.
    - `services`: the names that can also be imported from `chatmemory.services`. Each name maps to
      the module that defines it.
    - `api_urls`: the module whose `urlpatterns` go below `/api/v1/`; "" for none.
    - `flags`: the causes that the room adds to the overview.
    - `columns`: the columns that the room adds to the overview.

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
        """Return the providers in use for a conversation, each with the names of its models. If
        `memory_id` is "", return the providers in use for all conversations together.

        None if the room does not know which providers are in use.
        """
        return None

    def sealing(self, change: Recorded) -> None:
        """Fill in the digests of a step, or of a new conversation, before it is written. An
        exception undoes the whole change.
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
        """Return serializer fields to add to the API's response about a step. Each key is the name
        of a field.

        The API calls `get_attribute` of each field with the whole response, which has the
        `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return an object that checks the room's columns and tables while a conversation is
        verified. None if there is nothing to check.
        """
        return None
