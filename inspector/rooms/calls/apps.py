from __future__ import annotations

from chatmemory.room import Erased
from inspector.shell import room


class Calls(room.SiteRoom):
    name = "inspector.rooms.calls"
    verbose_name = "Calls"
    urls = "inspector.rooms.calls.urls"
    api_urls = "inspector.rooms.calls.api"

    def ready(self) -> None:
        from chatmemory.signals import vacuuming
        from inspector.rooms.calls.writes import forget_old_calls

        vacuuming.connect(forget_old_calls, dispatch_uid="inspector.rooms.calls")

    def erasing(self, erased: Erased) -> None:
        from inspector.rooms.calls.erasure import erase

        erase(erased)
