from __future__ import annotations

import getpass
import os
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from chatmemory import services
from chatmemory.exceptions import MemoryNotFound, VersionConflict
from chatmemory.explain.wording import counted
from chatmemory.ledger.branches import branches_of
from chatmemory.ledger.validation import ACTOR_LENGTH
from chatmemory.management.base import DatabaseCommand, check_ignored, confirmed
from chatmemory.managers import MemoryQuerySet
from chatmemory.messages.texts import printable
from chatmemory.models import Memory
from chatmemory.patterns import declared_pattern

SHOWN = 20
AGE = declared_pattern(r"(\d{1,5})d")


class Command(DatabaseCommand):
    help = (
        "Delete conversations by age or label, each with an audit entry. Run --dry-run first. "
        "Deletions that were interrupted are finished before."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            metavar="90d",
            help="conversations that did not change for this long, such as 90d",
        )
        parser.add_argument(
            "--label", metavar="NAME[:VALUE]", help="only conversations with this label"
        )
        parser.add_argument(
            "--begun", action="store_true", help="only finish deletions that were interrupted"
        )
        parser.add_argument(
            "--with-branches",
            action="store_true",
            help="also delete the conversations that were saved from them",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="list the conversations and delete nothing"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, **options: Any) -> None:
        check_ignored("begun", ("older_than", "label", "with_branches", "dry_run"), options)
        if options["begun"]:
            self.finish()
            return
        found = self.selected(options["older_than"], options["label"])
        ids = list(found.order_by("pk").values_list("pk", flat=True))
        self.stdout.write(f"{counted(len(ids), 'conversation')}: {_shown(ids)}")
        branches = branches_of(ids)
        if branches:
            fate = "are deleted, too" if options["with_branches"] else "stay, see --with-branches"
            self.stdout.write(
                f"{len(branches):,} were saved from them and {fate}: {_shown(branches)}"
            )
        if options["dry_run"] or not ids:
            return
        if not options["yes"] and not confirmed("Delete them?"):
            raise CommandError("nothing was deleted: type yes, or use --yes")
        self.finish()
        deleted = sum(self.delete(memory_id, found) for memory_id in ids)
        if options["with_branches"]:
            deleted += sum(self.delete(branch, Memory.objects.all()) for branch in branches)
        self.stdout.write(f"{deleted:,} deleted")

    def finish(self) -> None:
        if finished := services.finish_deletions():
            self.stdout.write(f"{counted(len(finished), 'interrupted deletion')} finished")
        if left := services.unaudited_deletions():
            self.stderr.write(
                f"{len(left):,} are hidden as if their deletion had begun, but no audit entry "
                f"tells of that: they are left, see verify_memories: {_shown(left)}"
            )

    def selected(self, older_than: str | None, label: str | None) -> MemoryQuerySet:
        if not older_than and not label:
            raise CommandError("use --older-than 90d, --label NAME:VALUE, or both; or --begun")
        found: MemoryQuerySet = Memory.objects.all()
        if older_than:
            age = AGE.fullmatch(older_than)
            if age is None:
                raise CommandError(f"--older-than must be days such as 90d, but is: {older_than!r}")
            found = found.filter(updated_at__lt=timezone.now() - timedelta(days=int(age[1])))
        return found.with_label(label) if label else found

    def delete(self, memory_id: str, found: MemoryQuerySet) -> bool:
        """Delete a conversation in its own transaction, unless it has changed meanwhile. Return
        whether it was deleted.
        """
        memory = found.filter(pk=memory_id).first()
        if memory is None:
            return False
        try:
            services.delete(memory_id, actor=_actor(), expected_version=memory.version)
        except (MemoryNotFound, VersionConflict):
            return False
        return True


def _actor() -> str:
    """Return the actor's name. An account may have no name, as in a container."""
    try:
        name = printable(getpass.getuser())
    except (KeyError, OSError):  # an OSError from Python 3.13 on
        name = f"uid {os.getuid()}"
    return f"purge by {name}"[:ACTOR_LENGTH]


def _shown(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
