from __future__ import annotations

import sys
from collections.abc import Mapping

from inspector.shell import room


class Recorder(room.SiteRoom):
    name = "inspector.rooms.recorder"
    verbose_name = "The recorder"
    needs = ("calls",)
    packages: Mapping[str, str] = {
        "httptools": "httptools",
        "brotli": "brotli",
        **({} if sys.version_info >= (3, 14) else {"backports.zstd": "backports.zstd"}),
    }

    def how_to_send(self, site: str, token: str) -> room.Fragment:
        return room.Fragment("rooms/recorder/_setup.html", {"port": PORT})


PORT = 8788  # the default of the command `record`
