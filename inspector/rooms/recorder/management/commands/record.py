from __future__ import annotations

import signal
from pathlib import Path
from threading import Event
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from chatmemory.management.base import DatabaseCommand, wrong_arguments
from inspector.rooms.recorder.apps import PORT
from inspector.rooms.recorder.proxy.headers import Upstream
from inspector.rooms.recorder.supervision import HOST, PortTaken, Supervisor


def spool_folder() -> Path:
    """Return the folder of calls that wait to be stored, in the data folder of the site."""
    return Path(getattr(settings, "VAR", Path.home() / ".local/share/chatmemory")) / "calls"


class Command(DatabaseCommand):
    help = (
        "Record the calls that programs make of OpenAI and Anthropic, and of what speaks like "
        "them, between the program and its provider. Only this machine is served."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=PORT, help="by default 8788")
        parser.add_argument(
            "--upstream",
            metavar="URL",
            help="where all requests go; else those with the header anthropic-version to "
            "Anthropic, and others to OpenAI",
        )
        parser.add_argument("--spool", type=Path, help="folder of calls that wait for the database")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = options["spool"] or spool_folder()
        try:
            if options["upstream"]:
                Upstream.at(options["upstream"])
            supervisor = Supervisor(options["port"], folder, options["upstream"])
        except ValueError as error:
            raise wrong_arguments(f"--upstream: {error}") from error
        except PortTaken as error:
            raise CommandError(str(error)) from error
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        site = f"http://{HOST}:{supervisor.port}"
        self.stdout.write(
            f"Recording on {site}. Set one variable in the program:\n"
            f"  OPENAI_BASE_URL={site}/v1\n"
            f"  ANTHROPIC_BASE_URL={site}"
        )
        self.stdout.flush()
        from inspector.rooms.recorder.storing import Storing  # slow to import, while calls wait

        storing = Storing(folder)
        storing.run(stopping)
        supervisor.stop()
        storing.store_waiting()
