"""How commands are typed here, and what they need before they begin."""

from __future__ import annotations

from argparse import ArgumentTypeError

from django.core.management import CommandError, call_command

from inspector.conf import configuration


def typed(command: str) -> str:
    """Return a command as it is typed."""
    return f"{configuration().MANAGE} {command}"


def check_migrated() -> None:
    """Raise CommandError if the database lacks tables, and say how to make them."""
    try:
        call_command("migrate", check_unapplied=True, verbosity=0)
    except SystemExit as error:
        message = f"the database is not up to date: run {typed('migrate')} first"
        raise CommandError(message) from error


def port_number(text: str) -> int:
    """Read a TCP port. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)
