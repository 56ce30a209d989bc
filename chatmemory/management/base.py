"""Base classes and helpers of the management commands."""

from __future__ import annotations

import errno
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any, Literal, Protocol

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from chatmemory.conf import fact_words
from chatmemory.database_errors import explain_error
from chatmemory.exceptions import ChatMemoryError
from chatmemory.printing import Options, Printer, discard_unwritten
from chatmemory.recall.facts import Words


class DatabaseCommand(BaseCommand):
    """Base class of the management commands.

    - Models and schema are checked before the command begins.
    - An invalid argument, or an error of the database, is reported in one sentence.
    - The command ends silently if the reader of its output has ended, such as `head`.
    """

    requires_system_checks: tuple[str, ...] | Literal["__all__"] = (Tags.models, Tags.database)

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except BrokenPipeError:  # the reader, such as `head`, has ended
            sys.exit(1)
        finally:
            discard_unwritten()

    def execute(self, *args: object, **options: object) -> str | None:
        if sys.stdout is None and not options.get("stdout"):
            raise CommandError("standard output is closed, so nothing can be printed")
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
        except ChatMemoryError as error:
            raise wrong_arguments(str(error)) from error
        except (DatabaseError, InterfaceError) as error:
            if explanation := explain_error(error):
                raise CommandError(explanation) from error
            raise
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise CommandError(
                    f"the rest of the output cannot be written: {error.strerror}"
                ) from error
            raise
        return output

    def printer(self, options: Options) -> Printer:
        """Return the printer for the rows of this command's output."""
        return Printer(self.stdout.write, self.stderr.write, as_json=options["json"])


class Report(Protocol):
    """The interface of the modules in chatmemory/reports, which report on files."""

    def add_arguments(self, parser: ArgumentParser) -> None: ...
    def report(self, options: Options, printer: Printer, words: Words) -> int: ...


class ReportCommand(DatabaseCommand):
    """Base class of commands that report on the given files. If no files are given, they report on
    the stored conversations.

    Files are reported on by the module `about_files`, without a database.
    """

    about_files: Report

    def add_arguments(self, parser: CommandParser) -> None:
        self.about_files.add_arguments(parser)

    def get_check_kwargs(
        self, options: dict[str, object]
    ) -> dict[str | None, Any]:  # Django's own type is private
        if options.get("files"):
            return {"tags": [Tags.models]}
        return super().get_check_kwargs(options)

    def handle(self, *args: object, **options: object) -> None:
        printer = self.printer(options)
        if options["files"]:
            code = self.about_files.report(options, printer, fact_words())
        else:
            code = self.of_stored(options, printer)
        if code:
            raise SystemExit(code)

    def of_stored(self, options: Options, printer: Printer) -> int:
        """Report on stored conversations, and return the exit code. A subclass overrides this
        method.
        """
        raise NotImplementedError


def wrong_arguments(message: str) -> CommandError:
    """Return the CommandError for an argument that cannot be used, such as an unknown conversation.
    The exit code is 2.
    """
    return CommandError(message, returncode=2)


def check_ignored(option: str, others: Iterable[str], options: Options) -> None:
    """Raise CommandError if `option` is given together with one of the options `others`, because
    the command would ignore `others`.
    """
    for other in others:
        if options[option] and options[other]:
            names = (f"--{name.replace('_', '-')}" for name in (option, other))
            raise wrong_arguments("use {} without {}".format(*names))


def confirmed(question: str) -> bool:
    """Ask for confirmation at the terminal, and return whether the answer is yes."""
    try:
        return input(f"{question} Type yes: ") == "yes"
    except EOFError:  # standard input is not a terminal
        return False
