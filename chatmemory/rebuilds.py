"""Prints a notice before `migrate` copies large tables of a SQLite database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from django.apps import apps
from django.db import connections, models
from django.db.migrations import Migration
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AlterField,
    AlterUniqueTogether,
    RemoveConstraint,
    RemoveField,
    RenameField,
    SeparateDatabaseAndState,
)
from django.db.migrations.operations.base import Operation

from chatmemory.rooms import rooms

MANY = 20_000  # rows; fewer take less than a second
COPYING = (
    *(AddConstraint, AlterField, AlterUniqueTogether, RemoveConstraint),
    *(RemoveField, RenameField),
)


def announce_rebuilds(
    using: str,
    plan: Sequence[tuple[Migration, bool]] = (),
    stdout: TextIO | None = None,
    **_: object,
) -> None:
    """Print which large tables of a SQLite database the planned migrations will copy, with the
    number of rows of each table.
    """
    if stdout is None or connections[using].vendor != "sqlite":
        return
    for table, times in copied_tables(migration for migration, _ in plan).items():
        rows = _rows_of(table, using)
        if rows >= MANY:
            often = "once" if times == 1 else f"{times} times"
            stdout.write(
                f"This migration copies the table {table} ({rows:,} rows) {often}. Nothing can be "
                "written meanwhile: docs/operations.md, Upgrades, says how long it takes.\n"
            )


def copied_tables(migrations: Iterable[Migration]) -> Counter[str]:
    """Return how often these migrations copy each table of chatmemory and its rooms."""
    ours = {"chatmemory", *(room.label for room in rooms())}
    found: Counter[str] = Counter()
    for migration in migrations:
        if migration.app_label in ours:
            for operation in _of_database(migration.operations):
                if _copies(operation):
                    found[_table(migration.app_label, operation)] += 1
    return found


def _of_database(operations: Iterable[Operation]) -> Iterable[Operation]:
    for each in operations:
        if isinstance(each, SeparateDatabaseAndState):
            yield from _of_database(each.database_operations)
        else:
            yield each


def _copies(operation: Operation) -> bool:
    if isinstance(operation, AddField):
        field = operation.field
        return not field.null or field.unique or field.default is not models.NOT_PROVIDED
    return isinstance(operation, COPYING)


def _table(app: str, operation: Any) -> str:  # their classes differ in attributes
    try:
        model = getattr(operation, "model_name", None) or operation.name
        return str(apps.get_model(app, model)._meta.db_table)
    except LookupError:  # a later migration deletes it
        return ""


def _rows_of(table: str, using: str) -> int:
    connection = connections[using]
    if not table or table not in connection.introspection.table_names():
        return 0
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608
        return int(cursor.fetchone()[0])
