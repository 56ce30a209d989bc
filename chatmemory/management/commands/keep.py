from __future__ import annotations

from time import sleep
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connections

from chatmemory.management.base import DatabaseCommand
from chatmemory.reading.conversations import is_writable
from chatmemory.services import Rounds

SECONDS, PAUSE_SECONDS = 5.0, 1.0


class Command(DatabaseCommand):
    help = (
        "Derive and keep data of changed conversations, such as incidents, until interrupted. "
        "`chatmemory run` and `manage.py serve` do this themselves: use it for a site on another "
        "server, such as a WSGI server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="end as soon as all conversations are known"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_writable():
            raise CommandError("the database cannot be written, so nothing can be kept in it")
        rounds = Rounds()
        while True:
            has_more = rounds.keep_some(SECONDS)
            if options["once"] and not has_more:
                return
            if not has_more:
                connections.close_all()
                sleep(PAUSE_SECONDS)
