from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from chatmemory.room import Erased
from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


class Simulation(room.SiteRoom):
    name = "inspector.rooms.simulation"
    verbose_name = "Simulation"
    urls = "inspector.rooms.simulation.urls"
    api_urls = "inspector.rooms.simulation.api"
    parameters: Mapping[str, type] = {"trial": str, "limit": int, "edit": int}
    services: Mapping[str, str] = {
        "branch": "inspector.rooms.simulation.branches",
        "forget_old_trials": "inspector.rooms.simulation.trials",
        "keep_trial": "inspector.rooms.simulation.trials",
    }

    def ready(self) -> None:
        from chatmemory.signals import vacuuming

        vacuuming.connect(_forget_old_trials, dispatch_uid="inspector.rooms.simulation.trials")

    def erasing(self, erased: Erased) -> None:
        from inspector.rooms.simulation.models import Trial

        Trial.objects.filter(memory_id=erased.memory_id).delete()

    def view(self, view: ConversationState) -> room.View | None:
        from inspector.rooms.simulation.shown import shown

        return shown(view)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.simulation.shown import parts

        return parts(view)


def _forget_old_trials(**_: object) -> None:
    from inspector.rooms.simulation.trials import forget_old_trials

    forget_old_trials()
