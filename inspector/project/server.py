"""The uvicorn server of `manage.py serve` and of gunicorn's workers."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

FIRST_REQUEST_SECONDS = 2


class Server(uvicorn.Server):
    """Stops without refusing a request: ends the live streams, whose readers would otherwise keep
    it from stopping, and answers connections that it has already accepted.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from inspector.live.stream import (
            close_streams,  # gunicorn imports this file before Django is set up
        )

        close_streams()
        for server in self.servers:
            server.close()
        await self._wait_for_first_requests()
        await super().shutdown(sockets=sockets)

    async def _wait_for_first_requests(self) -> None:
        """Waits up to 2 seconds until every new connection has brought a request.

        Uvicorn would close such a connection, and its client would see a refusal.
        """
        for _ in range(FIRST_REQUEST_SECONDS * 10):
            await asyncio.sleep(0.1)
            if self.force_exit or all(map(_has_requested, self.server_state.connections)):
                return


def _has_requested(connection: object) -> bool:
    """Whether a request has arrived: uvicorn then sets `cycle`, on HTTP/1.1 connections only."""
    return bool(getattr(connection, "cycle", True))
