from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState

REDACTION = "inspector.rooms.erasure.redaction"


class Erasure(room.SiteRoom):
    name = "inspector.rooms.erasure"
    verbose_name = "Redaction"
    urls = "inspector.rooms.erasure.urls"
    api_urls = "inspector.rooms.erasure.api"
    services = {"redact": REDACTION, "known_copies": REDACTION}

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        if view.selection.row and view.selection.row.redacted is None:
            yield room.Part("rooms/erasure/_redact.html", place=room.Place.BELOW_MESSAGE)
