"""`chatmemory`, the command of an installation that has no project of its own.

Its commands are those of manage.py, some of them under a shorter name. They use the database in the
user's data folder, or the one that the environment names (docs/operations.md). This module imports
Django only to carry out a command, so that it can say what is missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import chatmemory


class Named(NamedTuple):
    """A command of manage.py, and what it does in a few words."""

    command: str
    words: str


COMMANDS = {
    "run": Named("run", "serve the inspector on this machine, with a sign-in link"),
    "import": Named("import_transcripts", "store transcripts, or what export wrote"),
    "export": Named("export_conversations", "write conversations with all that is stored of them"),
    "show": Named("show_memory", "show history beside memory, now or after a step"),
    "recall": Named("recall", "how much of what was needed each limit would have held"),
    "incidents": Named("incidents", "facts that left memory and came up again"),
    "compactions": Named("compactions", "exact terms that the summaries of agents lost"),
    "doctor": Named("doctor", "windows that a provider would refuse, and why"),
    "verify": Named("verify_memories", "replay conversations and check their digests"),
    "mcp": Named("mcp", "answer a coding agent's questions over stdin and stdout"),
}


def main() -> None:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("help", "-h", "--help"):
        print(overview())  # noqa: T201
    elif name == "--version":
        print(chatmemory.__version__)  # noqa: T201
    else:
        carry_out(name, arguments)


def overview() -> str:
    """Return what can be typed."""
    width = max(map(len, COMMANDS))
    rows = (f"  {name:<{width}}  {each.words}" for name, each in COMMANDS.items())
    return "\n".join(
        (
            "usage: chatmemory COMMAND …   (chatmemory COMMAND --help tells its options)",
            "",
            *rows,
            "",
            "Every other command of manage.py is one, too: chatmemory create_token NAME.",
            "Exit codes: 0 it is done; 1 it failed, or found what it looks for; 2 its arguments",
            "cannot be used.",
        )
    )


def carry_out(name: str, arguments: Sequence[str]) -> None:
    """Carry out a command. Exits with 1 if a package is missing, and with 2 for an unknown name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    try:
        import django

        from inspector.__main__ import database_errors_told

        django.setup()
    except ModuleNotFoundError as error:
        sys.exit(f"chatmemory {name} needs {error.name}: pip install '.[inspector]' in a checkout")
    from django.core.management import get_commands, load_command_class

    known = COMMANDS[name].command if name in COMMANDS else name
    if (app := get_commands().get(known)) is None:
        print(f"chatmemory has no command {name!r}: see chatmemory --help", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    command = load_command_class(app, known) if isinstance(app, str) else app
    # These would come too late, and the environment names the settings.
    command.suppressed_base_arguments = {*command.suppressed_base_arguments, *_TOO_LATE}
    with database_errors_told():
        command.run_from_argv(["chatmemory", name, *arguments])


_TOO_LATE = ("--settings", "--pythonpath")
