from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from inspector.access import operator_named, sign_in_token


def sign_in_link(username: str, port: int) -> str:
    """A URL that signs this operator in once, on this machine, within 15 minutes."""
    return f"http://127.0.0.1:{port}/sign-in/{sign_in_token(operator_named(username))}/"


class Command(BaseCommand):
    help = "Print a link that signs an operator in: once, on this machine, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="operator")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(sign_in_link(options["username"], options["port"]))
