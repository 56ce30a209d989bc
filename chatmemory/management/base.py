"""What the commands have in common."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from chatmemory.core.exceptions import ChatMemoryError, UnreadableTranscript
from chatmemory.formats import Refused, Transcript, readable_formats, stream_transcripts
from chatmemory.services.database_errors import explain_error

LEFT_OUT = 3  # the exit status of a command that could not read all of its files


class DatabaseCommand(BaseCommand):
    """A command that checks models and schema before it begins, and tells in a sentence what is
    wrong with its arguments, the database or its output. It ends without a word if nobody reads
    that any more.
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
        except ChatMemoryError as error:
            raise wrong_arguments(str(error)) from error
        except (DatabaseError, InterfaceError) as error:
            if told := explain_error(error):
                raise CommandError(told) from error
            raise
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise CommandError(f"nothing more can be written: {error.strerror}") from error
            raise
        return output


class FileCommand(DatabaseCommand):
    """A command that reads transcripts, and needs no database where it is given files.

    `left_out` counts the conversations and lines of them that could not be read.
    """

    left_out = 0

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        if options.get("files"):
            return {"tags": [Tags.models]}
        return super().get_check_kwargs(options)

    def transcripts(self, options: Mapping[str, Any]) -> Iterator[Transcript]:
        """Yield the conversations of the files, and tell what is refused. Raises CommandError."""
        for path in options["files"]:
            yield from self.transcripts_of(path, options["format"])

    def end(self, is_found: bool) -> None:
        """Exit with 1 if what the command looks for was found, else with 3 if something of a file
        was left out.
        """
        if is_found or self.left_out:
            raise SystemExit(1 if is_found else LEFT_OUT)

    def transcripts_of(self, path: Path, format: str) -> Iterator[Transcript]:
        """Yield the conversations of one file."""
        with opened(path) as file:
            for each in stream_transcripts(file, format).conversations:
                if isinstance(each, Refused):
                    self.left_out += 1
                    self.stderr.write(f"left out {each.where}: {each.why}")
                else:
                    yield each


def _discard_unwritten() -> None:
    """Discard what could not be printed, so that Python does not try it again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with open(os.devnull, "w") as nowhere, suppress(OSError):
                os.dup2(nowhere.fileno(), stream.fileno())


def wrong_arguments(message: str) -> CommandError:
    """Return the error of a value, a file or a conversation that cannot be used: the command exits
    with 2, as for arguments that cannot be parsed.
    """
    return CommandError(message, returncode=2)


def check_ignored(option: str, others: Iterable[str], options: Mapping[str, Any]) -> None:
    """Raise CommandError if an option is given with others that it would ignore."""
    for other in others:
        if options[option] and options[other]:
            names = (f"--{name.replace('_', '-')}" for name in (option, other))
            raise wrong_arguments("use {} without {}".format(*names))


def add_file_arguments(parser: CommandParser, nargs: Literal["*", "+"], *formats: str) -> None:
    """Add the arguments of a command that reads transcripts: files, and their format, which may
    also be one of `formats`.
    """
    parser.add_argument(
        "files",
        nargs=nargs,
        metavar="FILE",
        type=Path,
        help="a JSON or JSON Lines file with one or more conversations",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=["auto", *readable_formats(), *formats],
        help="the format of the files; default: auto, which finds it out for each",
    )


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a transcript for the block. Raises CommandError for what cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise wrong_arguments(f"{path}: {error.strerror}") from error
    try:
        with file:
            yield file
    except UnreadableTranscript as error:
        raise wrong_arguments(f"{path}: {error}") from error


def confirmed(question: str) -> bool:
    """Ask at the terminal, and return whether the answer is yes."""
    try:
        return input(f"{question} Type yes: ") == "yes"
    except EOFError:  # standard input is not a terminal
        return False
