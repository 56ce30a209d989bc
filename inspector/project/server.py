"""The uvicorn server that `manage.py serve` and gunicorn's workers use."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

import uvicorn

from inspector.project.allocator import unmap_large_blocks
from inspector.shell.load import server_stopping

if TYPE_CHECKING:
    from inspector.shell.keeping import KeeperThread

# Java's HTTP client offers HTTP/2 (h2c) with each request, which any server may ignore.
_OFFERS = ("Unsupported upgrade request", "No supported WebSocket library")
ACCEPTED_SECONDS = 1


class Server(uvicorn.Server):
    """A uvicorn server with a background thread that computes derived data. On a large site, this
    thread also counts the conversations for the overview.

    `announcement` is a text that is printed as soon as the server accepts requests. When the server
    stops, it sends the signal `server_stopping`, so that rooms end long responses, such as live
    streams.
    """

    def __init__(self, config: uvicorn.Config, announcement: str = "") -> None:
        super().__init__(config)
        unmap_large_blocks()
        self._announcement = announcement
        logging.getLogger("uvicorn.error").addFilter(_is_no_offer)
        self._keeper: KeeperThread | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # gunicorn imports this file before Django is set up
        from inspector.overview.ahead import count_ahead
        from inspector.shell.keeping import KeeperThread

        load_what_requests_need()
        await super().startup(sockets=sockets)
        if self.started:
            from inspector.project.asgi import places

            loop = asyncio.get_running_loop()
            self._keeper = KeeperThread(None, lambda: places.beside(loop), (count_ahead,))
            self._keeper.start()
            if self._announcement:
                print(self._announcement, flush=True)  # noqa: T201

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._keeper:
            self._keeper.stop()
        server_stopping.send(sender=type(self))
        for server in self.servers:
            server.close()
        await self._wait_for_accepted()
        await super().shutdown(sockets=sockets)

    async def _wait_for_accepted(self) -> None:
        """Wait up to a second, so that each connection that was just accepted can send its request.

        Uvicorn would close such a connection, and its client would see a refusal. Connections that
        have already sent a request need not be waited for.
        """
        for _ in range(ACCEPTED_SECONDS * 10):
            await asyncio.sleep(0.1)
            opened = self.server_state.connections
            if self.force_exit or all(getattr(each, "cycle", None) for each in opened):
                return


def load_what_requests_need() -> None:
    """Import all views, and load the encoding of the default estimator. Otherwise the first
    requests would take longer.
    """
    from django.urls import get_resolver  # gunicorn imports this file before Django is set up

    from chatmemory.messages.estimators import load
    from chatmemory.windows.policies import DEFAULT_ESTIMATOR

    _ = get_resolver().url_patterns
    load(DEFAULT_ESTIMATOR)


def _is_no_offer(record: logging.LogRecord) -> bool:
    """Return whether to log a line of uvicorn. Lines about clients that only offered another
    protocol are not logged.
    """
    return not str(record.msg).startswith(_OFFERS)
