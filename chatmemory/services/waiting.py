"""Writes that are not worth waiting for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chatmemory import database


@contextmanager
def nowait() -> Iterator[None]:
    """A transaction in which a lock that another writer holds is an OperationalError at once."""
    connection = database.connection()
    if connection.vendor == "postgresql":
        with database.atomic(), connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            (before,) = cursor.fetchone()
            cursor.execute("SET LOCAL lock_timeout = 1")  # milliseconds; 0 would wait for ever
            yield
            # An outer transaction would keep it. After an error its savepoint has it as before
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (before,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            with database.atomic():
                yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(before)}")
