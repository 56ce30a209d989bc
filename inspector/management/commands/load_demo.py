from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand

from chatmemory import queries
from inspector import demo


class Command(BaseCommand):
    help = "Store the example conversations if the database has no conversations yet."
    requires_system_checks = (Tags.models,)

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--force", action="store_true", help="Store them beside other conversations, too."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["force"] and queries.any_memory():
            return
        for memory_id in demo.load():
            self.stdout.write(f"Stored the example conversation {memory_id}")
