from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from chatmemory import search, services
from chatmemory.api.idempotency import forget_expired


class Command(BaseCommand):
    help = (
        "Leave no trace of what was erased or has expired: SQLite's search index is written anew, "
        "its file is rewritten and its log emptied; PostgreSQL is vacuumed. Takes a while; writers "
        "wait."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        forget_expired()
        search.rebuild(connection)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        services.truncate_log()
        self.stdout.write("compacted")
