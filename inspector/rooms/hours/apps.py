from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.keeper import Keeper


class Hours(room.SiteRoom):
    name = "inspector.rooms.hours"
    verbose_name = "Hours"
    needs = ("calls",)

    def keepers(self) -> Iterable[Keeper]:
        from inspector.rooms.hours.keeping import HoursKeeper

        return (HoursKeeper(),)
