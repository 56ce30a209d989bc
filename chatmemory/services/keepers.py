"""The keepers, in the order in which they follow a change: first those of the kernel."""

from __future__ import annotations

from chatmemory.keeper import Keeper
from chatmemory.queries.compactions import CompactionKeeper
from chatmemory.queries.incidents import IncidentKeeper
from chatmemory.room import rooms

OWN: tuple[Keeper, ...] = (IncidentKeeper(), CompactionKeeper())


def keepers() -> tuple[Keeper, ...]:
    """Return all keepers, those of the installed rooms among them."""
    return (*OWN, *(keeper for room in rooms() for keeper in room.keepers()))
