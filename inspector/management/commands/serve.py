from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import uvicorn
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from inspector.access.sign_in_links import OPERATOR
from inspector.management.commands.sign_in_link import port_number, sign_in_link
from inspector.project.server import Server

HOST = "127.0.0.1"


class AnnouncedServer(Server):
    """Says where it can be reached once it can be."""

    announcement = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            print(self.announcement, flush=True)  # noqa: T201


class Command(BaseCommand):
    help = "Serve the inspector and the API on this machine, and print a link that signs in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        port = options["port"]
        listener = self.listener(port)
        server = AnnouncedServer(
            uvicorn.Config(
                "inspector.project.asgi:application",
                log_level="warning",
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=2,
            )
        )
        server.announcement = (
            f"\nMemory inspector: {sign_in_link(OPERATOR, port)}\n"
            "The link signs you in once; manage.py sign_in_link prints another. Ctrl-C stops.\n"
        )
        connection.close()  # each request opens its own
        with suppress(KeyboardInterrupt):  # which uvicorn raises again once it has stopped
            server.run(sockets=[listener])

    def listener(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise CommandError(
                f"port {port} cannot be used ({error.strerror}): try PORT=8001"
            ) from error
        return listener
