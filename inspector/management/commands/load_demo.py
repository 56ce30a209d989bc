from __future__ import annotations

from django.core.management.base import CommandParser

from chatmemory.management.base import DatabaseCommand
from chatmemory.reading.conversations import any_memory
from inspector import demo

REFUSED = (
    "Nothing was stored, because the database already has conversations. Use --force to add the "
    "example conversations"
)


class Command(DatabaseCommand):
    help = "Store the example conversations if the database has no conversations yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--force",
            action="store_true",
            help="Store the example conversations even if the database has other conversations.",
        )

    def handle(self, *args: object, **options: object) -> None:
        if not options["force"] and any_memory():
            self.stdout.write(REFUSED)
            return
        for memory_id in demo.load():
            self.stdout.write(f"Stored the example conversation {memory_id}")
