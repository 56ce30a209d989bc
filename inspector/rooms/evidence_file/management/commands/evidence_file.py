from __future__ import annotations

from pathlib import Path

from django.core.management.base import CommandParser

from chatmemory.management.base import DatabaseCommand, wrong_arguments
from chatmemory.printing import OptionValue
from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.evidence_file.reads import evidence
from inspector.rooms.evidence_file.views import ROLES, file_of
from inspector.shell.one_file import write_new


class Command(DatabaseCommand):
    help = (
        "Write the evidence file of a conversation: one HTML file with history beside memory, "
        "step by step. A browser opens the file from disk. The file does not contain masked text."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")
        parser.add_argument(
            "--at",
            type=int,
            metavar="STEP",
            help="the step that the file shows first; default: the last step",
        )
        parser.add_argument(
            "--mask",
            action="append",
            default=[],
            choices=list(KINDS),
            help="mask terms of this kind, such as mail addresses; can be given several times",
        )
        parser.add_argument("--mask-word", action="append", default=[], metavar="WORD")
        parser.add_argument(
            "--mask-role",
            action="append",
            default=[],
            choices=[name for name, _ in ROLES],
            help="mask all messages of this role; can be given several times",
        )
        parser.add_argument(
            "--mask-message", action="append", default=[], type=int, metavar="NUMBER"
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")

    def handle(self, *args: object, **options: OptionValue) -> None:
        masker = Masker(
            Choice(
                kinds=frozenset(options["mask"]),
                words=tuple(options["mask_word"]),
                roles=frozenset(options["mask_role"]),
                seqs=frozenset(options["mask_message"]),
            )
        )
        html = file_of(evidence(options["id"], options["at"], masker), masker, actor="")
        if options["output"] is None:
            self.stdout.write(html)
            return
        try:
            write_new(options["output"], html)
        except OSError as error:
            raise wrong_arguments(f"{options['output']}: {error.strerror}") from error
        self.stdout.write(str(options["output"]))
