from __future__ import annotations

from inspector.shell import room


class Recorder(room.SiteRoom):
    name = "inspector.rooms.recorder"
    verbose_name = "The recorder"
    needs = ("calls",)

    def how_to_send(self, site: str, token: str) -> room.Fragment:
        return room.Fragment("rooms/recorder/_setup.html", {"port": PORT})


PORT = 8788  # the default of the command `record`
