from __future__ import annotations

from collections.abc import Mapping

from inspector.shell import room


class Otlp(room.SiteRoom):
    name = "inspector.rooms.otlp"
    verbose_name = "Calls by OTLP"
    needs = ("calls",)
    packages: Mapping[str, str] = {"opentelemetry-proto": "opentelemetry.proto.trace.v1.trace_pb2"}
    urls = "inspector.rooms.otlp.urls"

    def how_to_send(self, site: str, token: str) -> room.Fragment:
        from inspector.rooms.otlp.variables import variables

        return room.Fragment("rooms/otlp/_setup.html", {"variables": variables(site, token)})
