"""Defines a room: a plug-in feature, with the hooks by which it adds to writing and reading.

A room can be removed with its folders. It is a Django application whose configuration is a `Room`.
The kernel (this package) imports no room. It calls the hooks of the installed rooms in the order of
INSTALLED_APPS; docs/rooms.md describes each hook. No hook changes a decision of the kernel.
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
    """The rows of a step, or of a new conversation without a step, before they are written.

    `memory` is the conversation's own row, already up to date. A stay is a period of a message in
    memory. `ended` has the number of each stay that the step ends, with its reason, in the order of
    the numbers. `redacted` is the message whose text the step erases.
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
    """A column of the overview; `words` is its heading.

    `sort_by` is a column of `Memory` or of a derived row, such as `keptincidents__forced`. Lists
    can then be sorted by it, highest first, and the API's `ordering` accepts `name`. Conversations
    without such a row count as 0. A `SiteRoom` provides the cells.
    """

    name: str
    words: str
    sort_by: str = ""


class Room(AppConfig):
    """The Django configuration of a room (plug-in feature). Subclasses override attributes and
    hooks.

    The room's name is the last part of the name of its module. Its app label is this name with the
    prefix `chatmemory_`. Methods import the modules of the room when called, because the
    configuration is loaded before the models.
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
        """Return the room's keepers, which derive rows from ledgers after the commit of a
        change.
        """
        return ()

    def in_use(self, memory_id: str) -> Mapping[str, Sequence[str]] | None:
        """Return the providers whose models get a conversation, or any conversation if the id is
        empty, each with its models. None if nobody has chosen providers.
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

    def step_fields(self) -> Mapping[str, Any]:
        """Return additional serializer fields for the API's response about a step. Their
        `get_attribute` gets the response, with the `memory_id`.
        """
        return {}

    def verifying(self, memory: Memory) -> LedgerCheck | None:
        """Return what checks the room's columns and tables while a conversation is verified, or
        None.
        """
        return None
