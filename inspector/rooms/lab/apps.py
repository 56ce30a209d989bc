from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from chatmemory.room import Erased
from inspector.rooms.lab import flagged
from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory import Policy
    from chatmemory.advice import Measured
    from chatmemory.keeper import Keeper
    from chatmemory.recall.cost import CacheRules
    from inspector.shell.agents import Answer
    from inspector.shell.state import ConversationState


class Lab(room.SiteRoom):
    name = "inspector.rooms.lab"
    verbose_name = "The lab"
    urls = "inspector.rooms.lab.urls"
    api_urls = "inspector.rooms.lab.api"
    menu = (room.MenuItem("Lab", "lab", 20, ("lab-compactions",), icon="sim"),)
    styles = ("rooms/lab/lab.css",)
    also_on = ("conversation", "simulate", "add", "branch")
    flags = flagged.FLAGS
    services: Mapping[str, str] = {"adopt_policy": "inspector.rooms.lab.adoption"}

    def ready(self) -> None:
        from chatmemory.signals import vacuuming

        vacuuming.connect(_forget_old_figures, dispatch_uid="inspector.rooms.lab.figures")

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.lab.parts import parts

        return parts(view)

    def keepers(self) -> Iterable[Keeper]:
        from inspector.rooms.lab.figures import FiguresKeeper

        return (FiguresKeeper(),)

    def measured(
        self,
        ids: Collection[str],
        policies: Mapping[str, Policy] | None = None,
        rules: CacheRules | None = None,
    ) -> Sequence[Measured]:
        from inspector.rooms.lab.figures import figures_now

        return figures_now(ids, policies or {}, rules)

    def tools(self) -> Iterable[Callable[..., Answer]]:
        from inspector.rooms.lab.agents import recall

        return (recall,)

    def erasing(self, erased: Erased) -> None:
        from inspector.rooms.lab.models import Figures

        Figures.objects.filter(memory_id=erased.memory_id).delete()


def _forget_old_figures(**_: object) -> None:
    from inspector.rooms.lab.writes import forget_old_figures

    forget_old_figures()
