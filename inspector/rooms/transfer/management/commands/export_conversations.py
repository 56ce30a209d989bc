from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.core.management import call_command, get_commands
from django.core.management.base import CommandParser

from chatmemory.explain.wording import counted
from chatmemory.formats import render_each, writable_formats
from chatmemory.ledger.lookup import find_memory
from chatmemory.management.base import DatabaseCommand, check_ignored, wrong_arguments
from chatmemory.models import Memory
from chatmemory.printing import Options, OptionValue, add_json_argument
from chatmemory.reading.history import whole_history
from inspector.rooms.transfer.exports import archive_lines, rendered_file

EVIDENCE_FILE = "evidence_file"  # a command of a room that may not be installed


class Command(DatabaseCommand):
    help = (
        "Export conversations with everything that is stored about them: history, steps, "
        "policies, pins and labels. import_transcripts FILE stores the same conversations again, "
        "also in a different database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID")
        parser.add_argument("--all", action="store_true", help="export all conversations")
        parser.add_argument(
            "--label", metavar="NAME[:VALUE]", help="export the conversations with this label"
        )
        parser.add_argument(
            "--format",
            choices=list(writable_formats()),
            help="export the history of one conversation, as a transcript in this format",
        )
        parser.add_argument(
            "--html",
            action="store_true",
            help="write the evidence file of one conversation; to mask texts, use evidence_file ID",
        )
        parser.add_argument(
            "--at",
            type=int,
            metavar="STEP",
            help="with --html: the step that the evidence file shows first",
        )
        add_json_argument(parser, "conversation that --output has")
        parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")

    def handle(self, *args: object, **options: OptionValue) -> None:
        chosen = [name for name in ("ids", "all", "label") if options[name]]
        if len(chosen) != 1:
            raise wrong_arguments(
                "choose conversations in exactly one way: by IDs, with --all, or with --label"
            )
        ids = list(dict.fromkeys(options["ids"])) or self.selected(options["label"])
        if options["html"]:
            self.write_evidence(ids, options)
            return
        for memory_id in options["ids"]:
            find_memory(memory_id)  # raises MemoryNotFound
        self.export(self.lines(ids, options["format"]), options["output"])
        if options["output"]:
            printer = self.printer(options)
            for memory_id in ids:
                printer.row({"conversation": memory_id})
            printer.total(
                {"file": str(options["output"]), "conversations": len(ids)},
                f"{options['output']}: {counted(len(ids), 'conversation')} exported",
            )

    def write_evidence(self, ids: list[str], options: Options) -> None:
        """Write the evidence file of the only conversation in `ids`, by calling the command for
        evidence files.
        """
        check_ignored("html", ("format", "json"), options)
        if len(ids) != 1:
            raise wrong_arguments(
                f"--html writes only one conversation, but {len(ids):,} are chosen: name one id"
            )
        if EVIDENCE_FILE not in get_commands():
            raise wrong_arguments(
                "--html needs the room evidence_file, which this site does not have"
            )
        name = ids[0]
        call_command(
            EVIDENCE_FILE, name, at=options["at"], output=options["output"], stdout=self.stdout
        )

    def lines(self, ids: list[str], format: str | None) -> Iterator[str]:
        """Return the lines of the file for the conversations `ids`. Only the format `chatmemory`
        (`format` is None) can have more than one conversation.
        """
        if format is None:
            return archive_lines(ids)
        if len(ids) != 1:
            raise wrong_arguments(
                f"--format writes only one conversation, but {len(ids):,} are chosen: name one id"
            )
        return iter(["".join(rendered_file(render_each(whole_history(ids[0]), format)))])

    def selected(self, label: str | None) -> list[str]:
        """Return the IDs of the conversations with the given label. If `label` is None, return the
        IDs of all conversations. Raises CommandError if no conversation is found.
        """
        rows = Memory.objects.all()
        rows = rows.with_label(label) if label else rows
        ids = list(rows.order_by("id").values_list("id", flat=True))
        if not ids:
            raise wrong_arguments(
                "no stored conversation matches: choose a different label, or import "
                "conversations first"
            )
        return ids

    def export(self, lines: Iterator[str], path: Path | None) -> None:
        """Write lines to a new file that only its owner can read. Without a `path`, print them."""
        if path is None:
            for line in lines:
                self.stdout.write(line)
            return
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise wrong_arguments(f"{path}: {error.strerror}") from error
        try:
            with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
