"""Very many rows of plain columns, read at once."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from chatmemory import database


def fetched(rows: QuerySet[Any, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of `values_list` as the database has them.

    Django reads them by the hundred, which takes a fifth longer for hundreds of thousands.
    """
    connection = database.connection()
    sql, parameters = rows.query.get_compiler(connection.alias).as_sql()
    with database.cursor(connection) as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
