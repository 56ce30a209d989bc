"""The keepers of the installed rooms, in the order in which they run after a change."""

from __future__ import annotations

from chatmemory.keeper import Keeper
from chatmemory.rooms import rooms


def keepers() -> tuple[Keeper, ...]:
    """Return all keepers."""
    return tuple(keeper for room in rooms() for keeper in room.keepers())
