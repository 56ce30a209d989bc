"""What the commands have in common."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from django.core.checks import Tags
from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    OutputWrapper,
)
from django.db import DatabaseError, InterfaceError

from chatmemory.core.exceptions import InvalidValue
from chatmemory.formats import Reading, Transcript, read_transcripts, readable_formats
from chatmemory.services.database_errors import explain_error


class DatabaseCommand(BaseCommand):
    """A command that checks models and schema before it begins, and tells in a sentence what is
    wrong with the database or with its output. It ends without a word if nobody reads that any
    more.
    """

    requires_system_checks: tuple[str, ...] | Literal["__all__"] = (Tags.models, Tags.database)

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except BrokenPipeError:  # of a reader such as `head`
            sys.exit(1)
        finally:
            _discard_unwritten()

    def execute(self, *args: Any, **options: Any) -> str | None:
        if sys.stdout is None and not options.get("stdout"):
            raise CommandError("there is no output to print to")
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
        except (DatabaseError, InterfaceError) as error:
            if told := explain_error(error):
                raise CommandError(told) from error
            raise
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise CommandError(f"nothing more can be written: {error.strerror}") from error
            raise
        return output


def _discard_unwritten() -> None:
    """Discard what could not be printed, so that Python does not try it again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with open(os.devnull, "w") as nowhere, suppress(OSError):
                os.dup2(nowhere.fileno(), stream.fileno())


def check_ignored(option: str, others: Iterable[str], options: Mapping[str, Any]) -> None:
    """Raise CommandError if an option is given with others that it would ignore."""
    for other in others:
        if options[option] and options[other]:
            names = (f"--{name.replace('_', '-')}" for name in (option, other))
            raise CommandError("use {} without {}".format(*names))


def add_file_arguments(parser: CommandParser, nargs: Literal["*", "+"]) -> None:
    """Add the arguments of a command that reads transcripts: files, and their format."""
    parser.add_argument(
        "files",
        nargs=nargs,
        metavar="FILE",
        type=Path,
        help="a JSON file with one or more conversations",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=["auto", *readable_formats()],
        help="the format of the files; default: auto, which finds it out for each",
    )


def transcripts_of(
    files: Iterable[Path], format: str, errors: OutputWrapper
) -> Iterator[Transcript]:
    """Yield the conversations of files, and write to `errors` what is refused.

    Raises CommandError.
    """
    for file in files:
        reading = read_file(file, format)
        for refused in reading.refused:
            errors.write(f"left out {refused.where}: {refused.why}")
        yield from reading.transcripts


def read_file(file: Path, format: str) -> Reading:
    """Return the transcripts of a file. Raises CommandError."""
    try:
        return read_transcripts(file.read_bytes(), format)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    except InvalidValue as error:
        raise CommandError(f"{file}: {error}") from error


def confirmed(question: str) -> bool:
    """Ask at the terminal, and return whether the answer is yes."""
    try:
        return input(f"{question} Type yes: ") == "yes"
    except EOFError:  # standard input is not a terminal
        return False
