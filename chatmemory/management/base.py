"""What the commands have in common."""

from __future__ import annotations

from typing import Any, Literal

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from chatmemory.services.database_errors import in_words

FILE_HELP = "a JSON file with one or more conversations"
FORMAT_HELP = "the format of the files; default: auto, which finds it out for each"


class DatabaseCommand(BaseCommand):
    """A command that checks the models before it begins, and tells in a sentence what is wrong with
    the database.
    """

    requires_system_checks: tuple[str, ...] | Literal["__all__"] = (Tags.models,)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            if told := in_words(error):
                raise CommandError(told) from error
            raise


def confirmed(question: str) -> bool:
    """Ask at the terminal, and return whether the answer is yes."""
    try:
        return input(f"{question} Type yes: ") == "yes"
    except EOFError:  # standard input is not a terminal
        return False
