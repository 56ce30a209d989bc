from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from django.db.models import Q

    from chatmemory.keeper import Keeper


class Hours(room.SiteRoom):
    name = "inspector.rooms.hours"
    verbose_name = "Hours"
    needs = ("calls",)
    styles = ("rooms/hours/hours.css",)
    also_on = ("overview", "over-time")
    value_columns: Mapping[str, str] = {
        "provider": "kepthours__provider",
        "model": "kepthours__model",
    }

    def keepers(self) -> Iterable[Keeper]:
        from inspector.rooms.hours.keeping import HoursKeeper

        return (HoursKeeper(),)

    def narrowing(self, name: str, value: str) -> Q | None:
        from inspector.rooms.hours.filters import narrowing

        return narrowing(name, value)

    def cases_on(self, day: str, flag: str) -> Mapping[str, int] | None:
        from inspector.rooms.hours.filters import cases_on

        return cases_on(day, flag)

    def over_time(self, listed: room.Listed, at_once: bool = False) -> room.OverTime | None:
        from inspector.rooms.hours.page import over_time

        return over_time(listed, at_once)
