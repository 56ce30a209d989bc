from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import IntegrityError

from chatmemory import database
from chatmemory.access.tokens import create_token
from chatmemory.management.base import DatabaseCommand
from chatmemory.printing import OptionValue
from chatmemory.roles import Role


class Command(DatabaseCommand):
    help = "Create a bearer token for the REST API and print it. It is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="a unique name, such as the client's")
        parser.add_argument("--role", choices=Role.values, default=Role.OPERATOR)
        parser.add_argument("--prefix", default="", help="limit the token to ids with this prefix")
        parser.add_argument("--days", type=int, help="days until the token expires; 0 means never")

    def handle(self, *args: object, **options: OptionValue) -> None:
        try:
            with database.atomic():  # keep the token only if its secret was printed
                secret = create_token(
                    options["name"],
                    role=options["role"],
                    prefix=options["prefix"],
                    days=options["days"],
                    created_by="create_token",
                )
                self.stdout.write(secret)
                self.stdout.flush()
        except ValidationError as error:
            fields = [f"{name}: {' '.join(texts)}" for name, texts in error.message_dict.items()]
            raise CommandError("; ".join(fields)) from error
        except IntegrityError as error:
            raise CommandError(
                f"a token with the name {options['name']!r} already exists: choose a different name"
            ) from error
        except OSError as error:
            why = f"its secret cannot be printed: {error.strerror}"
            raise CommandError(f"no token was created, because {why}") from error
