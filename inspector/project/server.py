"""Uvicorn, for one process (`manage.py serve`) and for gunicorn's workers."""

from __future__ import annotations

import socket

import uvicorn


class Server(uvicorn.Server):
    """Ends the live streams when it stops, instead of waiting for their readers to leave."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from inspector.stream import end_streams  # gunicorn reads this before Django is set up

        end_streams()
        await super().shutdown(sockets=sockets)
