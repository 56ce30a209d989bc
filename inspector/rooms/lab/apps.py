from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from chatmemory.room import Erased
from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.agents import Answer


class Lab(room.SiteRoom):
    name = "inspector.rooms.lab"
    verbose_name = "The lab"
    urls = "inspector.rooms.lab.urls"
    menu = (room.MenuItem("Lab", "lab", 20, ("lab-compactions",)),)
    styles = ("rooms/lab/lab.css",)

    def ready(self) -> None:
        from chatmemory.signals import vacuuming
        from inspector.rooms.lab.writes import forget_old_figures

        vacuuming.connect(forget_old_figures, dispatch_uid="inspector.rooms.lab.figures")

    def tools(self) -> Iterable[Callable[..., Answer]]:
        from inspector.rooms.lab.agents import recall

        return (recall,)

    def erasing(self, erased: Erased) -> None:
        from inspector.rooms.lab.models import Figures

        Figures.objects.filter(memory_id=erased.memory_id).delete()
