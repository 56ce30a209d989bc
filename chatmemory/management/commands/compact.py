from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from chatmemory import database, search, services
from chatmemory.api.idempotency import forget_expired
from chatmemory.signals import compacting

WAIT_SECONDS = 20


class Command(BaseCommand):
    help = (
        "Remove the traces of erased and expired data. On SQLite, rebuild the search index, "
        "rewrite the database file and empty the write-ahead log, while writers wait. On "
        "PostgreSQL, run VACUUM. This takes a while."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        forget_expired()
        services.forget_old_trials()
        compacting.send(self)
        connection = database.connection()
        search.rebuild(connection)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        if services.truncate_log(wait=WAIT_SECONDS):
            self.stdout.write("compacted")
        else:
            self.stdout.write("compacted, but a reader still needs the write-ahead log: try again")
