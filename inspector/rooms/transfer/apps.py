from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


IMPORTS = "inspector.rooms.transfer.imports"


class Transfer(room.SiteRoom):
    name = "inspector.rooms.transfer"
    verbose_name = "Import and export"
    needs = ("integrity",)
    urls = "inspector.rooms.transfer.urls"
    menu = (
        room.MenuItem(
            *("Import", "import", 40),
            permission="chatmemory.change_memory",
            icon="import",
            is_seldom=True,
        ),
    )
    services = dict.fromkeys(("Imported", "Report", "import_all"), IMPORTS)
    scripts = ("rooms/transfer/upload.js",)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        yield room.Part("rooms/transfer/_link.html", place=room.Place.LINK, order=40)
