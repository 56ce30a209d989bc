from __future__ import annotations

from inspector.asgi import Application, Scope
from inspector.shell import room
from inspector.shell.load import server_stopping


class Live(room.SiteRoom):
    name = "inspector.rooms.live"
    verbose_name = "Live updates"
    urls = "inspector.rooms.live.urls"
    scripts = ("rooms/live/live.js",)
    also_on = ("overview", "conversation", "simulate", "add", "branch")

    def ready(self) -> None:
        from inspector.rooms.live import metrics  # noqa: F401  (registers them)

        server_stopping.connect(_close_streams, dispatch_uid="inspector.rooms.live")

    def application(self, scope: Scope) -> Application | None:
        from inspector.rooms.live.stream import is_stream, stream

        return stream if is_stream(scope) else None


def _close_streams(**_: object) -> None:
    from inspector.rooms.live.stream import close_streams

    close_streams()
