"""The gunicorn worker class that deploy/gunicorn.conf.py names. It needs the extra `serve`.

A connection through a unix socket has no client address. The address is then read from
X-Forwarded-For: it is the last entry that is not the address of a trusted proxy.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from socket import AF_UNIX, socket
from types import FrameType
from typing import Any, cast

from gunicorn.arbiter import Arbiter
from uvicorn import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn_worker import UvicornWorker

from inspector.asgi import Application, Receive, Scope, Send
from inspector.project import handover
from inspector.project.server import Server

GRACE_SECONDS = 25
_SOCKET = ("unix:", 0)  # for the proxy's address


class WorkerServer(Server):
    """A server that keeps accepting connections during a reload until a new worker has started."""

    def __init__(self, config: Config, age: int) -> None:
        super().__init__(config)
        self._age = age
        self._is_told_to_end = False

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            handover.worker_started(self._age)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and handover.must_wait(self._age):
            self._is_told_to_end = True
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if self._is_told_to_end and not handover.must_wait(self._age):
            self.should_exit = True
        return await super().on_tick(counter)


class Worker(UvicornWorker):  # type: ignore[misc]  # the library has no types
    """A gunicorn worker. When the worker stops, running requests have 25 seconds to finish, and
    live streams end at once.
    """

    CONFIG_KWARGS = {
        "lifespan": "off",
        "ws": "none",
        "http": "h11",  # httptools refuses Java's clients, which offer HTTP/2
        "server_header": False,
        "timeout_graceful_shutdown": GRACE_SECONDS,
    }

    def run(self) -> None:
        self.config.app = self.wsgi
        if any(each.family is AF_UNIX for each in self.sockets):
            self.config.proxy_headers = False
            self.config.app = behind_unix_socket(self.wsgi, self.cfg.forwarded_allow_ips)
        server = WorkerServer(self.config, self.age)
        signal.signal(signal.SIGQUIT, server.handle_exit)  # otherwise it ends in a core dump
        server.run(sockets=self.sockets)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)


def behind_unix_socket(application: Application, trusted: Sequence[str]) -> Application:
    """Wrap an ASGI application for connections through a unix socket. Each request gets the client
    address from X-Forwarded-For, or None if the proxy at the socket did not send this header.
    `trusted` are the addresses of other proxies, whose entries in this header are skipped.
    """

    async def without_socket(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("client") == _SOCKET:
            scope["client"] = None
        await application(scope, receive, send)

    proxied = ProxyHeadersMiddleware(cast("Any", without_socket), [_SOCKET[0], *trusted])

    async def from_socket(scope: Scope, receive: Receive, send: Send) -> None:
        scope["client"] = _SOCKET
        await proxied(cast("Any", scope), cast("Any", receive), cast("Any", send))

    return from_socket
