from __future__ import annotations

from django.core.management.base import CommandParser

from chatmemory.access.tokens import revoke_token
from chatmemory.management.base import DatabaseCommand, wrong_arguments
from chatmemory.messages.ids import check_text
from chatmemory.models import ApiToken
from chatmemory.printing import OptionValue


class Command(DatabaseCommand):
    help = "Revoke a bearer token of the API at once. It stays in the list."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name of the token, as list_tokens shows it")

    def handle(self, *args: object, **options: OptionValue) -> None:
        name = options["name"]
        check_text(name, "the name of a token")
        token = ApiToken.objects.filter(name=name).first()
        if token is None:
            raise wrong_arguments(
                f"no token has the name {name!r}: manage.py list_tokens lists the names"
            )
        is_new = revoke_token(token.pk, actor="revoke_token")
        self.stdout.write(f"{name} {'is' if is_new else 'was already'} revoked")
