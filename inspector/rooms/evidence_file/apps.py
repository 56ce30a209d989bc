from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


class EvidenceFile(room.SiteRoom):
    name = "inspector.rooms.evidence_file"
    verbose_name = "The evidence file"
    urls = "inspector.rooms.evidence_file.urls"
    styles = ("rooms/evidence_file/form.css",)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        if not view.is_simulated and view.memory.last_step:
            yield room.Part("rooms/evidence_file/_link.html", place=room.Place.LINK, order=45)
