from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError

from chatmemory.access.roles import Role
from chatmemory.access.tokens import create_token


class Command(BaseCommand):
    help = "Make a bearer token for the REST API and print it. It is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the token is for, such as the client's name")
        parser.add_argument("--role", choices=Role.values, default=Role.OPERATOR)
        parser.add_argument("--prefix", default="", help="it knows only ids that begin with this")
        parser.add_argument("--days", type=int, help="how long it lets in; without it, for ever")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            secret = create_token(
                options["name"],
                role=options["role"],
                prefix=options["prefix"],
                days=options["days"],
                created_by="create_token",
            )
        except ValidationError as error:
            words = [f"{name}: {' '.join(said)}" for name, said in error.message_dict.items()]
            raise CommandError("; ".join(words)) from error
        except IntegrityError as error:
            raise CommandError(f"a token named {options['name']!r} exists already") from error
        self.stdout.write(secret)
