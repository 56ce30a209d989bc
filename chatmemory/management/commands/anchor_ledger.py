from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatmemory import services
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.explain import counted
from chatmemory.ledger.verification import verify
from chatmemory.management.base import DatabaseCommand
from chatmemory.management.commands.verify_memories import since


class Command(DatabaseCommand):
    help = (
        "Give digests to conversations that are older than the chain of digests, after their "
        "replay was compared. It writes in short transactions while others go on, and continues "
        "where it was interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "ids", nargs="*", metavar="ID", help="default: all conversations that need it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = anchored = 0
        for memory_id in options["ids"] or services.not_anchored():
            try:
                contradiction = verify(memory_id)
                if contradiction:
                    self.stderr.write(str(contradiction))
                    wrong += 1
                    continue
                memory = services.anchor(memory_id)
            except MemoryNotFound as error:
                if options["ids"]:
                    raise CommandError(str(error)) from error
                continue  # deleted meanwhile
            anchored += 1
            if memory.anchored_at:
                self.stdout.write(since(memory))
        if wrong:
            raise CommandError(
                f"{counted(wrong, 'conversation')} not anchored: replay gives something else"
            )
        self.stdout.write(f"{counted(anchored, 'conversation')} anchored")
