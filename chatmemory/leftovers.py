"""Finds and drops tables of rooms that were removed. Such tables may contain text of
conversations.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import apps
from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from chatmemory import database

PREFIX = "chatmemory_"  # of the rooms' labels
_OTHERS = {
    "sqlite": "SELECT type, name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": """SELECT 'index', indexname FROM pg_indexes WHERE schemaname = current_schema()
        AND tablename IN ('chatmemory_memory', 'chatmemory_message')""",
}


def leftover_tables(connection: BaseDatabaseWrapper) -> dict[str, list[str]]:
    """Return the tables of rooms that are no longer installed: names of tables, by the app label of
    the room.
    """
    installed = {each.label for each in apps.get_app_configs()}
    recorded = {app for app, _ in MigrationRecorder(connection).applied_migrations()}
    removed = sorted(each for each in recorded - installed if each.startswith(PREFIX))
    if not removed:
        return {}
    tables = sorted(connection.introspection.table_names())
    found = {each: [name for name in tables if _is_of(each, name)] for each in removed}
    return {label: names for label, names in found.items() if names}


def _is_of(label: str, name: str) -> bool:
    """Return whether a table, a trigger or an index with this name belongs to the room with this
    app label.
    """
    return name == label or name.startswith(f"{label}_")


def drop_leftover_tables() -> list[str]:
    """Drop the tables of rooms that are not installed, and their triggers and indexes on other
    tables. Returns the names of the tables.

    If such a room is installed again, its migrations create the tables again.
    """
    connection = database.connection()
    found = leftover_tables(connection)
    for label, tables in found.items():
        with database.atomic(), connection.cursor() as cursor:
            for kind, name in _others(connection, label):
                cursor.execute(f"DROP {kind} {connection.ops.quote_name(name)}")
            for name in tables:  # SQLite drops the tables of a virtual table's content with it
                cursor.execute(f"DROP TABLE IF EXISTS {connection.ops.quote_name(name)}")
            MigrationRecorder(connection).migration_qs.filter(app=label).delete()
    return [name for tables in found.values() for name in tables]


def _others(connection: BaseDatabaseWrapper, label: str) -> list[tuple[str, str]]:
    """Return the triggers and indexes that a room has made on tables of the kernel."""
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS[connection.vendor])
        return [(kind, name) for kind, name in cursor.fetchall() if _is_of(label, name)]


def check_leftover_tables(
    databases: Sequence[str] | None = None, **_: object
) -> list[CheckMessage]:
    """Check that every room with tables in the database is installed. A database that is down is
    skipped.

    This is a system check of Django.
    """
    found: dict[str, list[str]] = {}
    for using in databases or [database.alias()]:
        try:
            if database.has_tables(using):
                found |= leftover_tables(connections[using])
        except (AnyDatabaseError, ImproperlyConfigured):
            continue
    return [
        Caution(
            f"The room {label.removeprefix(PREFIX)!r} is not installed, but its tables are there, "
            f"and may hold words of conversations: {', '.join(tables)}.",
            hint="Install the room again, or drop its tables with manage.py vacuum.",
            id="chatmemory.W004",
        )
        for label, tables in found.items()
    ]
