from __future__ import annotations

import getpass
import os
from datetime import timedelta

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
from chatmemory.printing import OptionValue

SHOWN = 20
AGE = declared_pattern(r"(\d{1,5})d")


class Command(DatabaseCommand):
    help = (
        "Delete conversations by age or label, each with an audit entry. Run --dry-run first. "
        "Interrupted deletions of earlier runs are finished first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            metavar="90d",
            help="only conversations that did not change for this number of days, such as 90d",
        )
        parser.add_argument(
            "--label", metavar="NAME[:VALUE]", help="only conversations with this label"
        )
        parser.add_argument(
            "--begun",
            action="store_true",
            help="only finish the interrupted deletions of earlier runs",
        )
        parser.add_argument(
            "--with-branches",
            action="store_true",
            help="also delete the branches of the conversations",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="list the conversations and delete nothing"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: object, **options: OptionValue) -> None:
        check_ignored("begun", ("older_than", "label", "with_branches", "dry_run"), options)
        if options["begun"]:
            self.finish()
            return
        found = self.selected(options["older_than"], options["label"])
        ids = list(found.order_by("pk").values_list("pk", flat=True))
        self.stdout.write(f"{counted(len(ids), 'conversation')}: {_shown(ids)}")
        branches = branches_of(ids)
        if branches:
            noun = "branch" if len(branches) == 1 else "branches"
            fate = "also" if options["with_branches"] else "without --with-branches, not"
            self.stdout.write(
                f"{len(branches):,} {noun} of these conversations, {fate} deleted: "
                f"{_shown(branches)}"
            )
        if options["dry_run"] or not ids:
            return
        if not options["yes"] and not confirmed("Delete them?"):
            raise CommandError(
                "nothing was deleted, because you did not confirm: type yes, or use --yes"
            )
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
                f"{counted(len(left), 'conversation')} not deleted: marked as being deleted, but "
                "without an audit entry of the deletion. Check with verify_memories: "
                f"{_shown(left)}"
            )

    def selected(self, older_than: str | None, label: str | None) -> MemoryQuerySet:
        if not older_than and not label:
            raise CommandError(
                "choose the conversations to delete with --older-than 90d, --label NAME:VALUE or "
                "both, or use --begun alone"
            )
        found: MemoryQuerySet = Memory.objects.all()
        if older_than:
            age = AGE.fullmatch(older_than)
            if age is None:
                raise CommandError(
                    "--older-than must be 1 to 5 digits and a d for days, such as 90d, but is: "
                    f"{older_than!r}"
                )
            found = found.filter(updated_at__lt=timezone.now() - timedelta(days=int(age[1])))
        return found.with_label(label) if label else found

    def delete(self, memory_id: str, found: MemoryQuerySet) -> bool:
        """Delete a conversation in its own transaction, and return True.

        Return False, and delete nothing, if `found` no longer contains the conversation, or if
        somebody else changes or deletes it at the same time.
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
    """Return `purge by NAME` for the steps and audit entries. NAME is the name of the operating
    system's account; an account without a name, as in a container, has its number.
    """
    try:
        name = printable(getpass.getuser())
    except (KeyError, OSError):  # an OSError from Python 3.13 on
        name = f"uid {os.getuid()}"
    return f"purge by {name}"[:ACTOR_LENGTH]


def _shown(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
