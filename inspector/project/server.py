"""Uvicorn, for one process (`manage.py serve`) and for gunicorn's workers."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

FIRST_REQUEST_SECONDS = 2


class Server(uvicorn.Server):
    """Ends the live streams when it stops, instead of waiting for their readers to leave."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from inspector.live.stream import (
            close_streams,  # gunicorn reads this before Django is set up
        )

        close_streams()
        for server in self.servers:
            server.close()
        await self.first_requests()
        await super().shutdown(sockets=sockets)

    async def first_requests(self) -> None:
        """Waits for whoever was let in last: uvicorn would close the connection before it asks."""
        for _ in range(FIRST_REQUEST_SECONDS * 10):
            await asyncio.sleep(0.1)
            if self.force_exit or all(map(_has_asked, self.server_state.connections)):
                return


def _has_asked(connection: object) -> bool:
    """Whether it brought a request already; what is no plain HTTP/1.1 knows no `cycle`."""
    return bool(getattr(connection, "cycle", True))
