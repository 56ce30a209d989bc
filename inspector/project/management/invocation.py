"""How commands are typed here: manage.py in a checkout, `python -m inspector` where installed."""

from __future__ import annotations

from django.core.management import CommandError, call_command

from inspector.project.settings import IS_CHECKOUT


def typed(command: str) -> str:
    """Return a command as it is typed."""
    return f"manage.py {command}" if IS_CHECKOUT else f"python -m inspector {command}"


def check_migrated() -> None:
    """Raise CommandError if the database lacks tables, and say how to make them."""
    try:
        call_command("migrate", check_unapplied=True, verbosity=0)
    except SystemExit as error:
        message = f"the database is not up to date: run {typed('migrate')} first"
        raise CommandError(message) from error
