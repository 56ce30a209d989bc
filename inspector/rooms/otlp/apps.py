from __future__ import annotations

from inspector.shell import room


class Otlp(room.SiteRoom):
    name = "inspector.rooms.otlp"
    verbose_name = "Calls by OTLP"
    needs = ("calls",)
    urls = "inspector.rooms.otlp.urls"

    def how_to_send(self, site: str, token: str) -> room.Fragment:
        from inspector.rooms.otlp.variables import variables

        return room.Fragment("rooms/otlp/_setup.html", {"variables": variables(site, token)})
