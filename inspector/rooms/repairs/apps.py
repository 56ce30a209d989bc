from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


class RepairsRoom(room.SiteRoom):
    name = "inspector.rooms.repairs"
    verbose_name = "Repairs"
    needs = ("doctor",)
    urls = "inspector.rooms.repairs.urls"
    styles = ("rooms/repairs/repairs.css",)
    also_on = ("conversation",)
    parameters: Mapping[str, type] = {"repaired": str}
    services: Mapping[str, str] = dict.fromkeys(
        (
            "RepairPreview",
            "Repairs",
            "newest_repair",
            "preview_repair",
            "repair",
            "repair_all",
            "undo_repair",
        ),
        "inspector.rooms.repairs.writes",
    )

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        from inspector.rooms.repairs import card

        return card.parts(view)
