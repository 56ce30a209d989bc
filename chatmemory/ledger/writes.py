"""What is to be written, and its execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from chatmemory import database

COPIED = 20  # rows: PostgreSQL takes as many, or more, sooner by COPY than by INSERT


@dataclass(frozen=True)
class Write:
    """SQL, and the values with which it is executed, as the database takes them."""

    sql: str
    values: Sequence[Sequence[Any]]


class Insertion(Write):
    """An insertion of rows of a table."""

    @property
    def copy_sql(self) -> str:
        """The COPY that takes the same values as data."""
        table_and_columns, _ = self.sql.removeprefix("INSERT INTO").split(" VALUES ", 1)
        return f"COPY{table_and_columns} FROM STDIN"


NOTHING = Write("", ())


def execute(writes: Iterable[Write]) -> None:
    """Execute each SQL once for the values of each of its rows.

    PostgreSQL takes many rows last, as data. It compares foreign keys at the end of a transaction.
    """
    ours = database.connection()
    copied: list[Insertion] = []
    with database.cursor(ours) as cursor:
        with database.pipelined():
            for write in writes:
                if isinstance(write, Insertion) and _is_copied(write, ours):
                    copied.append(write)
                else:
                    _execute(cursor, write)
        for write in copied:
            _copy(cursor, write)


def _is_copied(insertion: Insertion, ours: BaseDatabaseWrapper) -> bool:
    return ours.vendor == "postgresql" and len(insertion.values) >= COPIED


def _copy(cursor: Any, insertion: Insertion) -> None:
    with cursor.db.wrap_database_errors, cursor.copy(insertion.copy_sql) as copy:
        for row in insertion.values:
            copy.write_row(row)


def _execute(cursor: Any, write: Write) -> None:
    if len(write.values) == 1:
        cursor.execute(write.sql, write.values[0])
    elif write.values:
        cursor.executemany(write.sql, write.values)
