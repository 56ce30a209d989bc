"""What is to be written, and its execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chatmemory import database


@dataclass(frozen=True)
class Write:
    """SQL, and the values with which it is executed, as the database takes them."""

    sql: str
    values: Sequence[Sequence[Any]]


class LongWrite(Write):
    """A write of long values, which are not made a part of the SQL: that would copy them."""


NOTHING = Write("", ())


def execute(writes: Iterable[Write]) -> None:
    """Execute each SQL once for the values of each of its rows."""
    ours = database.connection()
    with database.cursor(ours) as cursor:
        for write in writes:
            if isinstance(write, LongWrite):
                with database.binding_cursor(ours) as binding:
                    _execute(binding, write)
            else:
                _execute(cursor, write)


def _execute(cursor: Any, write: Write) -> None:
    if len(write.values) == 1:
        cursor.execute(write.sql, write.values[0])
    elif write.values:
        cursor.executemany(write.sql, write.values)
