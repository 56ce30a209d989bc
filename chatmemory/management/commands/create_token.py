from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError

from chatmemory.api.authentication import create_token


class Command(BaseCommand):
    help = "Make a bearer token for the REST API and print it. It is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the token is for, such as the client's name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            secret = create_token(options["name"])
        except IntegrityError as error:
            raise CommandError(f"a token named {options['name']!r} exists already") from error
        self.stdout.write(secret)
