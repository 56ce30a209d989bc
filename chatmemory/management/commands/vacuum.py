from __future__ import annotations

from chatmemory import database, distribution, services
from chatmemory.api.idempotency import forget_expired_answers
from chatmemory.leftovers import drop_leftover_tables
from chatmemory.management.base import DatabaseCommand
from chatmemory.signals import vacuuming

WAIT_SECONDS = 20


class Command(DatabaseCommand):
    help = (
        "Remove the traces of erased and expired data, and the tables of removed rooms. On SQLite, "
        "rebuild the search index, rewrite the database file and empty the write-ahead log, while "
        "writers wait. On PostgreSQL, run VACUUM. This takes a while."
    )

    def handle(self, *args: object, **options: object) -> None:
        forget_expired_answers()
        vacuuming.send(self)
        drop_leftover_tables()
        connection = database.connection()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
            if tables := distribution.distributed_tables():
                # In a cluster, VACUUM without names would run on the coordinator only.
                cursor.execute(f"VACUUM {', '.join(tables)}")
        if services.try_to_empty_log(wait=WAIT_SECONDS):
            self.stdout.write("vacuumed")
        else:
            self.stdout.write("vacuumed, but a reader still needs the write-ahead log: try again")
