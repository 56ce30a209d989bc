from __future__ import annotations

from time import sleep

from django.core.management.base import CommandError, CommandParser
from django.db import connections

from chatmemory.management.base import DatabaseCommand
from chatmemory.management.progress import progress
from chatmemory.reading.conversations import is_writable
from chatmemory.services import Rounds

SECONDS, PAUSE_SECONDS = 5.0, 1.0
SECONDS_OF_BAR = 1.0


class Command(DatabaseCommand):
    help = (
        "Derive and store data of changed conversations, such as incidents, until "
        "interrupted. `chatmemory run` and `manage.py serve` do this themselves: "
        "use this command for a site on another server, such as a WSGI server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once",
            action="store_true",
            help="end as soon as the data of all conversations is derived",
        )

    def handle(self, *args: object, **options: object) -> None:
        if not is_writable():
            raise CommandError("the database cannot be written, so no derived data can be stored")
        rounds = Rounds()
        if options["once"]:
            _keep_all(rounds)
            return
        while True:
            if not rounds.keep_some(SECONDS):
                connections.close_all()
                sleep(PAUSE_SECONDS)


def _keep_all(rounds: Rounds) -> None:
    """Derive all missing rows, and show the progress by conversations."""
    left = rounds.left()
    with progress(left, done="examined") as advance:
        has_more = True
        while has_more:
            has_more = rounds.keep_some(SECONDS_OF_BAR)
            before, left = left, rounds.left()
            advance(max(0, before - left))
