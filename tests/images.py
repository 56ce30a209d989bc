"""Images of the test database's states. SQLite copies their pages back in a millisecond."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection

KEPT = {"auth_permission", "django_content_type", "django_migrations"}  # written by a migration


def delete_rows() -> None:
    """Delete all rows of a PostgreSQL database, except the rows that its migrations wrote.

    The TRUNCATE of Django's flush makes a new file for each table and index, and waits until the
    disk has all of them.
    """
    tables = set(connection.introspection.django_table_names(only_existing=True)) - KEPT
    deletes = [f"DELETE FROM {connection.ops.quote_name(table)}" for table in sorted(tables)]
    with connection.cursor() as cursor:
        # In any order: foreign keys and triggers are switched off.
        cursor.execute("; ".join(["SET session_replication_role = replica", *deletes]))
        cursor.execute("SET session_replication_role = DEFAULT")


class Images:
    """Images of the database by name. PostgreSQL has no images: states are made again."""

    def __init__(self) -> None:
        self.kept: dict[str, sqlite3.Connection] = {}

    def take(self, name: str) -> None:
        self.kept[name] = sqlite3.connect(":memory:")
        connection.ensure_connection()
        connection.connection.backup(self.kept[name])

    def restore(self, name: str) -> None:
        connection.ensure_connection()
        self.kept[name].backup(connection.connection)

    def write(self, name: str, file: str) -> None:
        written = sqlite3.connect(file)
        self.kept[name].backup(written)
        written.close()

    def bring_about(self, name: str, make: Callable[[], object]) -> None:
        """Restore the state with this name, or make it if there is no image of it yet."""
        if name in self.kept:
            self.restore(name)
            return
        make()
        if connection.vendor == "sqlite":
            self.take(name)

    @contextmanager
    def lasting(self, name: str, make: Callable[[], object]) -> Iterator[None]:
        """Begin with the state with this name, and end with an empty database: for all tests of a
        module, each of which rolls back its own changes.
        """
        self.bring_about(name, make)
        yield
        if "migrated" in self.kept:
            self.restore("migrated")
        else:
            call_command("flush", verbosity=0, interactive=False)

    def close(self) -> None:
        for image in self.kept.values():
            image.close()
