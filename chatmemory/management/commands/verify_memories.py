from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from chatmemory import search, services
from chatmemory.contradictions import Contradiction
from chatmemory.exceptions import MemoryNotFound
from chatmemory.explain.wording import counted
from chatmemory.ledger.lookup import StoredId, stored, stored_ids
from chatmemory.ledger.validation import check_id
from chatmemory.ledger.verification import verify
from chatmemory.management.base import DatabaseCommand, check_ignored, wrong_arguments
from chatmemory.management.progress import progress
from chatmemory.management.slices import Slice
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory
from chatmemory.printing import OptionValue, add_json_argument
from chatmemory.services import remade
from chatmemory.sqlite_files import damage

NO_ID = "its id is not readable text"
STEP_DIGITS = 18


def head_line(memory_id: str) -> str:
    """Return a conversation's id as it is written in a file of heads. An id that is not printable,
    or begins with a quotation mark, is written as JSON.

    A file of heads has a line for each conversation: its id, the number of its newest step, and the
    digest of this step.
    """
    is_plain = memory_id.isprintable() and not memory_id.startswith('"')
    return memory_id if is_plain else json.dumps(memory_id)


def id_of(text: str) -> str:
    """Return the conversation id that `head_line` wrote as this text."""
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:  # an earlier version did not write JSON
        return text


def named_or_all(ids: list[str], rows: MemoryQuerySet) -> Iterable[StoredId]:
    """Return the given ids; if none are given, the ids of all conversations in `rows`."""
    return map(StoredId, ids) if ids else (memory_id for (memory_id,) in stored_ids(rows))


def known(ids: list[str]) -> list[str]:
    """Return the ids without duplicates. Raises CommandError for an id that no conversation has.
    Conversations that are being deleted are known, too.
    """
    for memory_id in ids:
        check_id(memory_id)
        if not Memory.with_deleted.filter(pk=memory_id).exists():
            raise wrong_arguments(f"no conversation has the id {memory_id!r}")
    return list(dict.fromkeys(ids))


def _contradiction(memory_id: StoredId) -> Contradiction | None:
    if not memory_id.is_readable:
        return Contradiction(memory_id.text, "the conversation", NO_ID)
    return verify(memory_id.text)


class Command(DatabaseCommand):
    help = (
        "Replay conversations by the rules of their policies, and compare the result "
        "with the stored rows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="default: all conversations")
        parser.add_argument(
            "--heads",
            type=Path,
            metavar="FILE",
            help="also compare the digests that --print-heads printed earlier: lines of "
            "id, step and digest; - is stdin",
        )
        parser.add_argument(
            "--print-heads",
            action="store_true",
            help="only print the digest of the newest step of each conversation, to be "
            "stored elsewhere",
        )

        parser.add_argument(
            "--repair-index",
            action="store_true",
            help="first add the names and messages that the search index lacks",
        )
        parser.add_argument(
            "--resume",
            nargs="?",
            type=Path,
            const=Path("verify_memories.progress"),
            metavar="FILE",
            help="continue where an earlier run with this file ended; default: "
            "%(const)s in this folder",
        )
        parser.add_argument(
            "--seconds",
            type=int,
            metavar="N",
            help="end after this number of seconds, between two conversations; needs --resume",
        )
        add_json_argument(parser, "contradiction")

    def handle(self, *args: object, **options: OptionValue) -> None:
        check_ignored("print_heads", ("heads", "repair_index", "json", "resume"), options)
        if options["seconds"] is not None and not options["resume"]:
            raise wrong_arguments(
                "--seconds needs --resume, which stores which conversations were verified"
            )
        if options["resume"] and options["ids"]:
            raise wrong_arguments("--resume is for all conversations: leave out the ids")
        ids = known(options["ids"])
        if options["print_heads"]:
            return self.print_heads(ids)
        if not ids and (found := damage()):
            raise CommandError(f"the database is damaged: {found}: restore a backup")
        if options["repair_index"]:
            self.repair_index(ids, options["json"])
        of_heads = self.of_heads(options["heads"]) if options["heads"] else []
        part = Slice(options["resume"], options["seconds"])
        made_anew = self.replay(ids, part, is_quiet=options["json"])
        verified, of_replays = part.so_far.verified, part.so_far.contradictions
        self.tell(verified, of_heads + of_replays, made_anew, options["json"], left=part.left)
        faults = []
        if of_replays:
            faults = [f"{len(of_replays)} of {verified} conversations differ from their replay"]
        if of_heads:
            differ = "differs" if len(of_heads) == 1 else "differ"
            faults.append(f"{counted(len(of_heads), 'digest')} of --heads {differ} from the ledger")
        if faults:
            raise CommandError("; ".join(faults))
        if not options["json"]:
            sentence = f"{counted(verified, 'conversation')} verified: all match their replay"
            goes_on = (
                (
                    f"; {part.left:,} conversations are left to verify: repeat the command "
                    "with --resume"
                )
                if part.left
                else ""
            )
            self.stdout.write(sentence + goes_on)
        return None

    def tell(
        self,
        verified: int,
        found: list[Contradiction],
        made_anew: list[tuple[str, str]],
        as_json: bool,
        left: int,
    ) -> None:
        if as_json:
            printer = self.printer({"json": True})
            for each in found:
                row = {"conversation": each.memory_id, "row": each.row, "what": each.what}
                printer.row(row)
            for memory_id, name in made_anew:
                printer.row({"conversation": memory_id, "made_anew": name})
            total = {"verified": verified, "contradictions": len(found)}
            printer.total({**total, "made_anew": len(made_anew), "left": left})
            return
        for memory_id, name in made_anew:
            self.stderr.write(
                f"{memory_id!r}: the stored {name} differed from the ledger, and were "
                "computed again"
            )
        for contradiction in found:
            self.stderr.write(str(contradiction))

    def replay(self, ids: list[str], part: Slice, is_quiet: bool) -> list[tuple[str, str]]:
        """Verify the conversations with these ids; if `ids` is empty, those of the slice `part`.

        Returns the derived rows that differed from the ledger, as pairs such as `("order-7741",
        "incidents")`: a conversation id and a kind of row. These rows are replaced if the database
        can be written.

        The derived rows of a conversation are not examined if its stored rows contradict its
        ledger.
        """
        rows = Memory.with_deleted.all()
        if after := part.so_far.after:
            rows = rows.filter(id__gt=after)
        made_anew = list[tuple[str, str]]()
        with progress(len(ids) or rows.count(), is_quiet) as advance:
            for memory_id in named_or_all(ids, rows):
                if part.is_over:
                    break
                try:
                    found = _contradiction(memory_id)
                    if found is None:
                        made_anew += [(memory_id.text, name) for name in remade(memory_id.text)]
                except MemoryNotFound as error:
                    if ids:
                        raise CommandError(str(error)) from error
                    continue  # deleted, or being deleted
                part.add(memory_id.text, found)
                advance(1)
        part.left = 0 if ids else Memory.with_deleted.filter(id__gt=part.so_far.after).count()
        (part.keep if part.left else part.end)()
        return made_anew

    def of_heads(self, file: Path) -> list[Contradiction]:
        """Compare the stored steps with a file of heads, and return the contradictions. For each
        conversation, the file has the digest of the step that was newest when the file was written.

        Raises CommandError if the file cannot be read or has a line in another format. Also raises
        CommandError if the room `integrity` is not installed.
        """
        try:
            content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
            text = content.decode("utf-8").removesuffix("\n")
        except OSError as error:
            raise wrong_arguments(f"{file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            why = f"not UTF-8: {error.reason} at byte {error.start}"
            raise wrong_arguments(f"{file}: {why}") from error
        verify_head = getattr(services, "verify_head", None)
        if verify_head is None:
            raise wrong_arguments(
                "this installation cannot compare digests: the room integrity is not "
                "in INSTALLED_APPS"
            )
        found = list[Contradiction | None]()
        for number, line in enumerate(text.split("\n") if text else (), 1):
            parts = line.removesuffix("\r").split("\t")
            if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > STEP_DIGITS:
                raise wrong_arguments(
                    f"{file}, line {number}: expected id, step and digest, separated by tabs"
                )
            found.append(verify_head(id_of(parts[0]), int(parts[1]), parts[2]))
        return [contradiction for contradiction in found if contradiction]

    def repair_index(self, ids: list[str], as_json: bool) -> None:
        found = named_or_all(ids, Memory.objects.all())
        readable = (memory_id.text for memory_id in found if memory_id.is_readable)
        repaired = sum(map(search.index().repair, readable))
        sentence = f"Names and messages put into the search index: {repaired}"
        (self.stderr if as_json else self.stdout).write(sentence)

    def print_heads(self, ids: list[str]) -> None:
        rows = Memory.objects.filter(last_step__gt=0)
        chosen = rows.filter(id__in=ids) if ids else rows
        unreadable = 0
        for memory_id, step, head in stored_ids(chosen, "last_step", "head"):
            try:
                if not memory_id.is_readable:
                    raise TypeError(NO_ID)
                digest = stored(head).hex()
            except TypeError as error:
                self.stderr.write(
                    f"{memory_id.text!r}: the digest of its newest step cannot be read: {error}"
                )
                unreadable += 1
            else:
                self.stdout.write(f"{head_line(memory_id.text)}\t{step}\t{digest}")
        if unreadable:
            raise CommandError(f"{counted(unreadable, 'digest')} cannot be read")
