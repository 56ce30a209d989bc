"""`chatmemory`, the command of an installation without a Django project of its own.

It has the commands of manage.py, some under a shorter name. They use the database in the user's
data folder, or the database named in the environment (docs/operations.md).

Reports on files, such as `chatmemory recall FILE`, need only the library. So this module does not
import Django for them. If a command needs a package that is not installed, the package's name is
printed.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import chatmemory
from chatmemory import ChatMemoryError
from chatmemory.printing import Printer, discard_unwritten
from inspector.completion import SHELLS, completion

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

SETTINGS = "inspector.project.settings"


class Named(NamedTuple):
    """A command of `chatmemory`: its description in the list of commands, and where its code is.

    - `command` is the command's name in manage.py, such as "list_memories" for `chatmemory list`.
    - `words` says what the command does.
    - `folder` is the folder inside the package chatmemory with the command's report on files, such
      as "reports". "" for a command without a report on files.
    """

    command: str
    words: str
    folder: str = ""


COMMANDS = {
    "run": Named("run", "serve the inspector to this machine, and print a sign-in link"),
    "import": Named(
        "import_transcripts",
        "store the conversations of transcripts, or of files that export wrote",
    ),
    "list": Named("list_memories", "list the stored conversations, the newest first"),
    "show": Named(
        "show_memory", "show the history of a conversation beside its memory, now or after a step"
    ),
    "export": Named(
        "export_conversations",
        "write conversations to a file, with everything that is stored about them",
    ),
    "recall": Named(
        "recall",
        "show the share of facts needed again that each limit would have kept in memory",
        "reports",
    ),
    "strategies": Named(
        "strategies",
        "show which facts the memory of each agent framework would have kept, and the cost",
        "reports",
    ),
    "incidents": Named("incidents", "list the facts that left memory and came up again", "reports"),
    "compactions": Named(
        "compactions", "list the exact terms that the summaries of agents lost", "reports"
    ),
    "hook": Named("hook", "print the exact terms that a summary lost, as a hook of a coding agent"),
    "doctor": Named("doctor", "list the windows that a provider would reject, and why", "reports"),
    "check": Named("check", "check a policy with recorded conversations", "testing"),
    "verify": Named(
        "verify_memories", "replay conversations, and compare the result with the stored rows"
    ),
    "record": Named("record", "record the model calls between programs and their providers"),
    "calls": Named("calls", "list the recorded model calls, or show the request of one call"),
    "mcp": Named("mcp", "serve tools to a coding agent by MCP, over stdin and stdout"),
}
COMPLETION = "print a script that completes commands in bash, zsh or fish"


def main() -> None:
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("help", "-h", "--help"):
        print(overview())  # noqa: T201
    elif name == "--version":
        print(chatmemory.__version__)  # noqa: T201
    elif name == "completion":
        print(completion_script(arguments))  # noqa: T201
    else:
        carry_out(name, arguments)


def overview() -> str:
    """Return the help text of `chatmemory`, which lists the commands and the exit codes."""
    rows = {name: each.words for name, each in COMMANDS.items()} | {"completion": COMPLETION}
    width = max(map(len, rows))
    return "\n".join(
        (
            "usage: chatmemory COMMAND …   (chatmemory COMMAND --help lists its options)",
            "",
            *(f"  {name:<{width}}  {words}" for name, words in rows.items()),
            "",
            "All other commands of manage.py work, too, such as: chatmemory create_token NAME.",
            "Exit codes: 0 done; 1 failed, or found problems; 2 an argument cannot be used;",
            "3 a part of a file could not be read.",
        )
    )


def carry_out(name: str, arguments: Sequence[str]) -> None:
    """Run the command of `chatmemory` with this name. Exits with 1 if a package that the command
    needs is missing, and with 2 for an unknown name.
    """
    if name == "hook":
        _hook(arguments)
    settings = os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    gc.disable()  # nothing that a command imports is garbage: to search it takes a sixth of a start
    if settings == SETTINGS and name in COMMANDS and COMMANDS[name].folder:
        _report_on_files(name, arguments)
    try:
        command = _command(name)
    except ModuleNotFoundError as error:
        sys.exit(_what_is_missing(name, error))
    _collect_garbage_again()
    from inspector.__main__ import database_errors_explained

    with database_errors_explained():
        if settings == SETTINGS and not {"-h", "--help"} & {*arguments}:
            from inspector.project.first_start import prepare_database

            prepare_database(COMMANDS[name].command if name in COMMANDS else name)
        command.run_from_argv(["chatmemory", name, *arguments])


def _collect_garbage_again() -> None:
    """Turn garbage collection on, but exempt everything that has been imported up to now."""
    gc.freeze()
    gc.enable()


def _report_on_files(name: str, arguments: Sequence[str]) -> None:
    """Report on files and exit. Return without effect if no file is named, or if an option needs
    Django.
    """
    from argparse import ArgumentParser  # the list of commands needs none

    report = import_module(f"chatmemory.{COMMANDS[name].folder}.{name}")
    parser = ArgumentParser(prog=f"chatmemory {name}", description=report.HELP)
    report.add_arguments(parser)
    known, unknown = parser.parse_known_args(arguments)
    options = vars(known)
    if not (options["files"] or options.get("error")) or unknown:
        return
    _collect_garbage_again()
    try:
        printer = Printer(_print, _print_error, as_json=options["json"])
        code = report.report(options, printer)
        sys.stdout.flush()
    except ChatMemoryError as error:
        _print_error(f"CommandError: {error}")
        code = 2
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _print_error(
                f"CommandError: the rest of the output cannot be written: {error.strerror}"
            )
        elif error.errno != errno.EPIPE:  # a reader such as `head` causes it
            raise
        code = 1
    discard_unwritten()
    sys.exit(code)


def _hook(arguments: Sequence[str]) -> None:
    """Run the command `chatmemory hook` and exit. Django is not imported, because that would take
    too long.
    """
    from argparse import ArgumentParser

    report = import_module("chatmemory.reports.hook")
    parser = ArgumentParser(prog="chatmemory hook", description=report.HELP)
    report.add_arguments(parser)
    sys.exit(report.run(vars(parser.parse_args(arguments)), _print))


def _print(line: str) -> None:
    print(line)  # noqa: T201


def _print_error(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201


def _command(name: str) -> BaseCommand:
    """Return a command of manage.py. Exits with 2 if there is no command of this name.

    Raises ModuleNotFoundError if a package is missing.
    """
    import django

    django.setup()
    from django.core.management import get_commands, load_command_class

    known = COMMANDS[name].command if name in COMMANDS else name
    if (app := get_commands().get(known)) is None:
        _print_error(f"chatmemory has no command {name!r}: chatmemory --help lists the commands")
        sys.exit(2)
    command = load_command_class(app, known) if isinstance(app, str) else app
    # These options would come too late, and the environment names the settings.
    command.suppressed_base_arguments = {*command.suppressed_base_arguments, *_TOO_LATE}
    return command


_TOO_LATE = ("--settings", "--pythonpath")


def _what_is_missing(name: str, error: ModuleNotFoundError) -> str:
    install = (
        f"needs the package {error.name}, which is not installed: pip install '.[inspector]' in a "
        "checkout"
    )
    if name in COMMANDS and COMMANDS[name].folder:
        return (
            f"chatmemory {name} for stored conversations {install}. To report on files, name the "
            "files: this needs no such package"
        )
    return f"chatmemory {name} {install}"


def completion_script(arguments: Sequence[str]) -> str:
    """Return the completion script for the shell named in the arguments. Exits with 2 for an
    unknown shell.
    """
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        _print_error(f"usage: chatmemory completion {{{','.join(SHELLS)}}}")
        sys.exit(2)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    options = {name: _options(name) for name in COMMANDS}
    words = {name: each.words for name, each in COMMANDS.items()}
    words["completion"], options["completion"] = COMPLETION, []
    return completion(arguments[0], words, options)


def _options(name: str) -> list[str]:
    """Return the options of a command, such as --json, or [] if its packages are missing."""
    from argparse import ArgumentParser

    parser = ArgumentParser()
    if COMMANDS[name].folder:
        import_module(f"chatmemory.{COMMANDS[name].folder}.{name}").add_arguments(parser)
    else:
        with suppress(ModuleNotFoundError):
            _command(name).add_arguments(parser)  # type: ignore[arg-type]  # it uses no more
    strings = [text for action in parser._actions for text in action.option_strings]
    return [text for text in strings if text.startswith("--")]
