"""The worker class of deploy/gunicorn.conf.py. It needs the extra `serve`."""

from __future__ import annotations

import sys
from socket import AF_UNIX

from gunicorn.arbiter import Arbiter
from uvicorn_worker import UvicornWorker

from inspector.project.server import Server
from inspector.project.unix_socket import behind_unix_socket

GRACE_SECONDS = 25


class Worker(UvicornWorker):  # type: ignore[misc]
    """When it stops, running requests have 25 seconds to finish; live streams end at once."""

    CONFIG_KWARGS = {
        "lifespan": "off",
        "ws": "none",
        "server_header": False,
        "timeout_graceful_shutdown": GRACE_SECONDS,
    }

    async def _serve(self) -> None:
        self.config.app = self.wsgi
        if any(each.family is AF_UNIX for each in self.sockets):
            self.config.proxy_headers = False
            self.config.app = behind_unix_socket(self.wsgi, self.cfg.forwarded_allow_ips)
        server = Server(config=self.config)
        self._install_sigquit_handler()
        await server.serve(sockets=self.sockets)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
