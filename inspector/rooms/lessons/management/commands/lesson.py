from __future__ import annotations

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from chatmemory.management.base import wrong_arguments
from chatmemory.printing import OptionValue
from inspector.rooms.lessons.catalogue import lesson_named
from inspector.rooms.lessons.file import lesson_file
from inspector.shell.one_file import write_new


class Command(BaseCommand):
    help = "Write a lesson to one HTML file. A browser opens the file from disk, without a server."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name",
            metavar="NAME",
            help="the name of a lesson as in its URL, or the path of a .toml file",
        )
        parser.add_argument(
            "--html", action="store_true", required=True, help="write an HTML file; required"
        )
        parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")

    def handle(self, *args: object, **options: OptionValue) -> None:
        try:
            html = lesson_file(lesson_named(options["name"]))
        except LookupError as error:
            raise wrong_arguments(str(error.args[0])) from error
        if options["output"] is None:
            self.stdout.write(html)
            return
        try:
            write_new(options["output"], html)
        except OSError as error:
            raise wrong_arguments(f"{options['output']}: {error.strerror}") from error
        self.stdout.write(str(options["output"]))
