"""Images of the test database's states. SQLite copies their pages back in a millisecond."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils.timezone import localdate

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
        self.made: dict[str, Any] = {}  # what was returned when the state of an image was made

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

    def bring_about(self, name: str, make: Callable[[], Any]) -> Any:
        """Restore the state with this name, or make it if there is no image of it yet.

        Return what `make` returned when it made the state.
        """
        if name in self.kept:
            self.restore(name)
            return self.made[name]
        self.made[name] = make()
        if connection.vendor == "sqlite":
            self.take(name)
        return self.made[name]

    @contextmanager
    def lasting(self, name: str, make: Callable[[], object]) -> Iterator[Any]:
        """Begin with the state with this name, and end with an empty database. Tests meanwhile
        roll back their own changes. Yields what `make` returned.
        """
        yield self.bring_about(name, make)
        if "migrated" in self.kept:
            self.restore("migrated")
        elif connection.vendor == "postgresql":
            delete_rows()
        else:
            call_command("flush", verbosity=0, interactive=False)

    def close(self) -> None:
        for image in self.kept.values():
            image.close()


def made_once(make: Callable[..., Any]) -> Any:
    """Turn a function that fills an empty database into a fixture with its name and its result.

    Each process calls the function once a day, and later tests begin with an image of what it made.
    It may ask for fixtures of modules and sessions. Tests must not change its result.
    """
    name, asked = f"{make.__module__}.{make.__qualname__}", inspect.signature(make).parameters

    # Of class scope, and so before the transaction of a test: no page is restored within one.
    # A test that is in no class is a class of its own.
    @pytest.fixture(scope="class", name=make.__name__)
    def begun(request, django_db_setup, django_db_blocker, images) -> Iterator[Any]:
        given = [request.getfixturevalue(each) for each in asked]
        image = f"{name} of {localdate()}"
        with (
            django_db_blocker.unblock(),
            images.lasting(image, lambda: make(*given)) as made,
        ):
            yield made

    begun.__doc__ = make.__doc__
    return begun
