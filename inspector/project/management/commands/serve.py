from __future__ import annotations

import json
import socket
from argparse import ArgumentTypeError
from contextlib import suppress

import uvicorn
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from chatmemory.management.base import DatabaseCommand
from chatmemory.printing import OptionValue
from chatmemory.reading.conversations import is_writable
from inspector.access import OPERATOR, sign_in_link
from inspector.conf import inspector_configuration
from inspector.project.server import Server

HOST, PORT = "127.0.0.1", 8000


class ServerCommand(DatabaseCommand):
    """Base class of the commands `serve` and `sign_in_link`. It adds the option `--port` for the
    port of the server, and has a check for missing migrations.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=_port, default=PORT, help=f"Default: {PORT}.")

    def check_migrated(self) -> None:
        """Raise CommandError if the database lacks a migration, and say which command to run."""
        try:
            call_command("migrate", check_unapplied=True, verbosity=0)
        except SystemExit as error:
            message = f"the database is not up to date: run {command_line('migrate')} first"
            raise CommandError(message) from error


class Command(ServerCommand):
    help = (
        "Serve the inspector and the API to this machine only, and print a link that signs you in."
    )
    requires_system_checks = "__all__"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--json",
            action="store_true",
            help="print the URLs of the site and of the sign-in link as JSON",
        )

    def handle(self, *args: object, **options: OptionValue) -> None:
        self.check_migrated()
        port = options["port"]
        listener = listening_socket(port)
        config = uvicorn.Config(
            "inspector.project.asgi:application",
            log_level="warning",
            lifespan="off",
            ws="none",
            http="h11",  # httptools refuses Java's clients, which offer HTTP/2
            timeout_graceful_shutdown=2,
        )
        announced = _links(port) if options["json"] else _announcement(port)
        server = Server(config, announced)
        connections.close_all()  # requests open their own connections
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has stopped
            server.run(sockets=[listener])


def command_line(command: str) -> str:
    """Return a command as people type it on this installation, such as `python manage.py serve` or
    `chatmemory serve`.
    """
    return f"{inspector_configuration().MANAGE} {command}"


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(
            f"the port must be a whole number from 1 to 65535, but is: {text!r}"
        )
    return int(text)


def _announcement(port: int) -> str:
    if not is_writable():
        return (
            f"\nMemory inspector: http://{HOST}:{port}/\n"
            "The database is read-only: nobody can sign in, and API tokens can only read.\n"
            "Ctrl-C stops.\n"
        )
    again = "sign_in_link" if port == PORT else f"sign_in_link --port {port}"
    return (
        f"\nMemory inspector: {sign_in_link(OPERATOR, port)}\n"
        f"The link works once. {command_line(again)} prints another. Ctrl-C stops.\n"
    )


def _links(port: int) -> str:
    """Return the URLs as JSON. `sign_in` is null if the database is read-only."""
    link = sign_in_link(OPERATOR, port) if is_writable() else None
    return json.dumps({"url": f"http://{HOST}:{port}/", "sign_in": link})


def listening_socket(port: int) -> socket.socket:
    """Return a socket that is bound to the port, for the server to listen on. Raises CommandError
    if that fails.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Otherwise a response waits until the client acknowledges its headers, which takes 40 ms on
    # Linux.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        message = (
            f"the port {port} cannot be used ({error.strerror}): choose a different port with "
            "--port"
        )
        raise CommandError(f"{message} (PORT=8001 make run)") from error
    return listener
