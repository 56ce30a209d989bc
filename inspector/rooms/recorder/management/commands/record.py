from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Event, Thread, Timer
from time import monotonic

from django.core.management.base import CommandError, CommandParser

from chatmemory.management.base import DatabaseCommand, wrong_arguments
from chatmemory.printing import OptionValue
from inspector.rooms.recorder.apps import PORT
from inspector.rooms.recorder.folders import spool_folder
from inspector.rooms.recorder.supervision import HOST, PortTaken, Supervisor

LAST_SECONDS = 0.5  # in which the calls that have just ended are stored
DEADLINE_SECONDS = 4.0
ENDING_SECONDS = 1.0  # in which the call ends that is being stored


class Command(DatabaseCommand):
    help = (
        "Record model calls between programs and OpenAI, Anthropic, Gemini or a provider with the "
        "same API. The recorder passes each request on, and serves only this machine."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--port", type=int, default=PORT, help="the port of the recorder; default: 8788"
        )
        parser.add_argument(
            "--upstream",
            metavar="URL",
            help="the provider that gets all requests; default: requests with the header "
            "anthropic-version go to Anthropic, requests for Gemini to Google, and all others to "
            "OpenAI",
        )
        parser.add_argument(
            "--spool", type=Path, help="the folder for calls that are not in the database yet"
        )

    def handle(self, *args: object, **options: OptionValue) -> None:
        # Packages of the room are named by its check, which comes after the import of a command
        from inspector.rooms.recorder.proxy.headers import Upstream

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
            f"Recording on {site}. Set the variable of the provider for your program:\n"
            f"  OPENAI_BASE_URL={site}/v1\n"
            f"  ANTHROPIC_BASE_URL={site}\n"
            f"  GOOGLE_GEMINI_BASE_URL={site}"
        )
        self.stdout.flush()
        _store_until(stopping, supervisor, folder)


def _store_until(stopping: Event, supervisor: Supervisor, folder: Path) -> None:
    """Store calls until the command is stopped. Then end within 5 seconds.

    Calls in progress continue in their proxy. Calls that are not stored yet are stored at the next
    start.
    """
    from inspector.rooms.recorder import spool, storing  # slow to import, while calls wait

    found = storing.Storing(folder)
    thread = Thread(target=found.run, daemon=True)
    thread.start()
    stopping.wait()
    _end_within(DEADLINE_SECONDS)
    supervisor.stop()
    end = monotonic() + LAST_SECONDS
    while thread.is_alive() and monotonic() < end and spool.waiting(folder, 1):
        thread.join(storing.PAUSE)
    found.stop()
    thread.join(ENDING_SECONDS)
    if thread.is_alive():  # it waits for the database, whose transaction ends with the connection
        sys.stdout.flush()
        os._exit(0)


def _end_within(seconds: float) -> None:
    """End this process after some seconds, whatever it is doing then."""
    timer = Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
