from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from django.core.management.base import CommandParser

from chatmemory.access.tokens import all_tokens
from chatmemory.explain import wording
from chatmemory.management.base import DatabaseCommand
from chatmemory.messages.texts import one_line
from chatmemory.models import ApiToken
from chatmemory.printing import add_json_argument


class Command(DatabaseCommand):
    help = "List the bearer tokens of the API, the newest first. Their secrets are not stored."

    def add_arguments(self, parser: CommandParser) -> None:
        add_json_argument(parser, "token")

    def handle(self, *args: object, **options: object) -> None:
        printer = self.printer(options)
        tokens = all_tokens()
        for token in tokens:
            printer.row(_values(token), _words(token))
        valid = sum(_state(token) == "valid" for token in tokens)
        words = f"{wording.counted(len(tokens), 'token')}, {valid:,} valid"
        printer.total({"tokens": len(tokens), "valid": valid}, words)


def _state(token: ApiToken) -> str:
    if token.revoked_at:
        return "revoked"
    return "expired" if token.has_expired else "valid"


def _values(token: ApiToken) -> Mapping[str, object]:
    times = ("created_at", "expires_at", "last_used_at", "revoked_at")
    moments = {name: getattr(token, name) for name in times}
    return {
        "name": token.name,
        "role": token.role,
        "prefix": token.prefix,
        "state": _state(token),
        **{name: moment and moment.isoformat() for name, moment in moments.items()},
    }


def _words(token: ApiToken) -> str:
    beginning = f"ids that begin with {one_line(token.prefix)}" if token.prefix else "all ids"
    until = f"until {_day(token.expires_at)}" if token.expires_at else "no expiry"
    used = f"last used {_day(token.last_used_at)}" if token.last_used_at else "never used"
    created = f"made {_day(token.created_at)}"
    parts = (token.role, beginning, _state(token), until, created, used)
    return f"{one_line(token.name)}: {', '.join(parts)}"


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"
