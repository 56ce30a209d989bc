from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inspector.access.sign_in_links import OPERATOR, get_account, make_token


def port_number(text: str) -> int:
    """Reads a TCP port. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def sign_in_link(username: str, port: int) -> str:
    """Returns a URL that signs this account in once, on this machine, within 15 minutes."""
    return f"http://127.0.0.1:{port}/sign-in/{make_token(get_account(username))}/"


class Command(BaseCommand):
    help = "Print a link that signs an account in once, on this machine, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default=OPERATOR, help="Default: operator.")
        parser.add_argument("--port", type=port_number, default=8000, help="Default: 8000.")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["username"]
        try:
            self.stdout.write(sign_in_link(name, options["port"]))
        except User.DoesNotExist as error:
            message = f"no account is named {name!r}: manage.py createsuperuser makes one"
            raise CommandError(message) from error
