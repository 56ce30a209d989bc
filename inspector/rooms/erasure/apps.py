from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from chatmemory.reading.rows import MessageDetail
    from inspector.conversation.state import ConversationState

REDACTION = "inspector.rooms.erasure.redaction"


class Erasure(room.SiteRoom):
    name = "inspector.rooms.erasure"
    verbose_name = "Redaction"
    urls = "inspector.rooms.erasure.urls"
    api_urls = "inspector.rooms.erasure.api"
    services = {"redact": REDACTION, "known_copies": REDACTION}

    def sections(self, view: ConversationState, message: MessageDetail) -> Iterable[room.Part]:
        if message.redacted is None:
            yield room.Part("rooms/erasure/_redact.html", is_below=True)
