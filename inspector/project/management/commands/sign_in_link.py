from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from chatmemory.management.base import DatabaseCommand
from inspector.access import OPERATOR, sign_in_link
from inspector.project.management.invocation import check_migrated, port_number, typed


class Command(DatabaseCommand):
    help = "Print a link that signs an account in once, on this machine, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default=OPERATOR, help="Default: operator.")
        parser.add_argument("--port", type=port_number, default=8000, help="Default: 8000.")

    def handle(self, *args: Any, **options: Any) -> None:
        check_migrated()
        name = options["username"]
        try:
            self.stdout.write(sign_in_link(name, options["port"]))
        except User.DoesNotExist as error:
            message = f"no account is named {name!r}: {typed('createsuperuser')} makes one"
            raise CommandError(message) from error
