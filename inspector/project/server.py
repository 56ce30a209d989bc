"""The uvicorn server of `manage.py serve` and of gunicorn's workers."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from inspector.live.keeping import KeeperThread

# Java's HTTP client offers HTTP/2 (h2c) with each request, which any server may ignore.
_OFFERS = ("Unsupported upgrade request", "No supported WebSocket library")
FIRST_REQUEST_SECONDS = 2
HEADER_SECONDS = 20


class Server(uvicorn.Server):
    """Keeps what is derived from ledgers in a thread beside its requests. As soon as it accepts
    those, it prints its announcement, if it has one.

    Closes connections on which no request arrives, and stops without refusing one: ends the live
    streams, whose readers would otherwise keep it from stopping, and answers connections that it
    has already accepted.

    It reads private names of uvicorn's connections, so pyproject.toml bounds the version below the
    next minor. Gunicorn's own ASGI worker has no limit for slow headers, and no hook for ending
    streams before it waits for them.
    """

    def __init__(self, config: uvicorn.Config, announcement: str = "") -> None:
        super().__init__(config)
        self._announcement = announcement
        logging.getLogger("uvicorn.error").addFilter(_is_no_offer)
        # Connections that owe a request, each with its last one, and since when.
        self._owing: dict[tuple[Any, Any], float] = {}
        self._keeper: KeeperThread | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        from inspector.live.keeping import (
            KeeperThread,  # gunicorn imports this file before Django is set up
        )

        await super().startup(sockets=sockets)
        if self.started:
            self._keeper = KeeperThread()
            self._keeper.start()
            if self._announcement:
                print(self._announcement, flush=True)  # noqa: T201

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn calls this every tenth of a second."""
        if counter % 10 == 0:
            self._close_owing()
        return await super().on_tick(counter)

    def _close_owing(self) -> None:
        """Close connections that have owed a request for 20 seconds, such as half of a header.

        Uvicorn closes those by itself that send nothing after an answer.
        """
        now = asyncio.get_running_loop().time()
        connections = filter(_owes_a_request, self.server_state.connections)
        owing = {(each, getattr(each, "cycle", None)) for each in connections}
        self._owing = {each: self._owing.get(each, now) for each in owing}
        for (connection, _), since in self._owing.items():
            if now - since >= HEADER_SECONDS:
                connection.transport.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        from inspector.live.stream import (
            close_streams,  # gunicorn imports this file before Django is set up
        )

        if self._keeper:
            self._keeper.stop()
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


def _is_no_offer(record: logging.LogRecord) -> bool:
    """Whether to log a line of uvicorn: not that a client offered another protocol."""
    return not str(record.msg).startswith(_OFFERS)


def _owes_a_request(connection: object) -> bool:
    """Whether a connection is open without a request in progress, and is not waited for by a timer:
    uvicorn then has no `cycle`, or one that is complete, and no `timeout_keep_alive_task`.
    """
    cycle = getattr(connection, "cycle", None)
    is_idle = cycle is None or cycle.response_complete
    return is_idle and getattr(connection, "timeout_keep_alive_task", None) is None


def _has_requested(connection: object) -> bool:
    """Whether a request has arrived: uvicorn then sets `cycle`, on HTTP/1.1 connections only."""
    return bool(getattr(connection, "cycle", True))
