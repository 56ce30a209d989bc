from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from inspector.shell import room

if TYPE_CHECKING:
    from inspector.shell.state import ConversationState


class Settings(room.SiteRoom):
    name = "inspector.rooms.settings"
    verbose_name = "Settings"
    urls = "inspector.rooms.settings.urls"
    menu = (
        room.MenuItem("Policies", "policies", 60, icon="policy", is_seldom=True),
        room.MenuItem(
            *("Tokens", "tokens", 70),
            permission="chatmemory.add_apitoken",
            icon="key",
            is_seldom=True,
        ),
    )
    styles = ("rooms/settings/settings.css",)

    def parts(self, view: ConversationState) -> Iterable[room.Part]:
        yield room.Part("rooms/settings/_link.html", place=room.Place.LINK, order=50)

    def muted(self) -> Mapping[str, room.Muted]:
        from inspector.rooms.settings import muting

        return muting.muted()
