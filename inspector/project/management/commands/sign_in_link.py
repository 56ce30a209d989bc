from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from chatmemory.printing import OptionValue
from inspector.access import OPERATOR, sign_in_link
from inspector.project.management.commands.serve import ServerCommand, command_line


class Command(ServerCommand):
    help = (
        "Print a link that signs you in to an account. The link works once, on this machine, for "
        "15 minutes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--username", default=OPERATOR, help="Default: operator.")

    def handle(self, *args: object, **options: OptionValue) -> None:
        self.check_migrated()
        name = options["username"]
        try:
            self.stdout.write(sign_in_link(name, options["port"]))
        except User.DoesNotExist as error:
            message = (
                f"no account has the name {name!r}: create the account with "
                f"{command_line('createsuperuser')}"
            )
            raise CommandError(message) from error
