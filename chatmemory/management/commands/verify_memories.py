from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.services.validation import check_id


class Command(BaseCommand):
    help = "Replay conversations through the core and compare the result with the stored rows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="default: all conversations")

    def handle(self, *args: Any, **options: Any) -> None:
        ids = options["ids"] or Memory.objects.order_by("id").values_list("pk", flat=True)
        verified, wrong = 0, []
        for memory_id in list(ids):
            if not Memory.objects.filter(pk=check_id(memory_id)).exists():
                raise CommandError(f"no conversation has the id {memory_id!r}")
            found = verify(memory_id)
            verified += 1
            if found:
                wrong.append(found)
                self.stderr.write(str(found))
        if wrong:
            raise CommandError(f"{len(wrong)} of {verified} conversations differ from their replay")
        self.stdout.write(f"{verified} conversations verified: all match their replay")
