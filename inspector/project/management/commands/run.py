from __future__ import annotations

import sys

from django.core.management import call_command
from django.core.management.base import CommandParser

from chatmemory.reading.conversations import any_memory
from inspector.project.management.commands.serve import Command as Serve


class Command(Serve):
    help = (
        "Make or update the database, store the demo conversations if it has none, and serve the "
        "inspector to this machine with a link that signs you in."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-demo", action="store_true", help="do not store the demo conversations"
        )

    def handle(self, *args: object, **options: object) -> None:
        call_command("migrate", verbosity=0)
        if not options["no_demo"] and not any_memory():
            call_command("load_demo", stdout=sys.stderr)  # with --json, stdout has the addresses
        super().handle(*args, **options)
