"""Reads and writes rows of a Django model by plain SQL. This is for small and frequent statements,
which take several times as long with Django's ORM. Rooms may use this module.
"""

# ruff: noqa: S608 - the parts of the statements are names of tables and columns

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import DateTimeField, JSONField, Model
from django.utils.timezone import make_naive

from chatmemory import database
from chatmemory.messages.json_values import JsonDict

M = TypeVar("M", bound=Model)
SqlValue = Any  # of a column: what it may be, only the table knows
SqlRow = tuple[SqlValue, ...]  # the columns of a statement, in its order
NamedRow = Any  # a named tuple of a table's columns, made at run time
Values = Sequence[SqlValue] | Mapping[str, SqlValue]  # the parameters of a statement


class Table(Generic[M]):
    """Reads and writes the rows of one model by plain SQL.

    Rows are read as instances of the model, and inserted from any objects with the columns as
    attributes. With `only`, only the columns in `only` are read and written. Django reads any other
    column of an instance when code first uses it.
    """

    def __init__(self, model: type[M], only: Collection[str] = ()) -> None:
        name = model._meta.db_table
        every = model._meta.concrete_fields
        fields = [each for each in every if each.attname in only] if only else every
        self._model = model
        self.names = [field.attname for field in fields]
        self._times = [n for n, field in enumerate(fields) if isinstance(field, DateTimeField)]
        self._jsons = [n for n, field in enumerate(fields) if isinstance(field, JSONField)]
        self._conversions = dict.fromkeys(self._times, _time) | dict.fromkeys(self._jsons, _json)
        self._row = _tuple_of(self.names)
        self.values: Callable[[object], SqlRow] = attrgetter(*self.names)
        columns, marks = ", ".join(self.names), ", ".join(["%s"] * len(fields))
        self._select = f"SELECT {columns} FROM {name} WHERE"
        self.insert = f"INSERT INTO {name} ({columns}) VALUES ({marks})"
        self.copy = f"COPY {name} ({columns}) FROM STDIN"
        pairs = ", ".join(f"{each} = %s" for each in self.names[1:])
        self._update = f"UPDATE {name} SET {pairs} WHERE {self.names[0]} = %s"

    def read(self, cursor: CursorWrapper, condition: str, **values: SqlValue) -> M | None:
        """Return the first row that meets a SQL condition, or None. `values` are the parameters of
        the condition.
        """
        cursor.execute(f"{self._select} {condition}", values)
        row = cursor.fetchone()
        return None if row is None else self._made(row, cursor.db)

    def read_all(self, condition: str, values: Values) -> list[M]:
        """Return all rows that meet a SQL condition. The condition may end with ORDER BY and LIMIT.
        `values` are its parameters.
        """
        with database.cursor() as cursor:
            cursor.execute(f"{self._select} {condition}", values)
            return [self._made(row, cursor.db) for row in cursor.fetchall()]

    def read_rows(self, condition: str, values: Values) -> list[NamedRow]:
        """Return all rows that meet a SQL condition, as named tuples, which is faster than
        `read_all`. `values` are the parameters of the condition.
        """
        with database.cursor() as cursor:
            cursor.execute(f"{self._select} {condition}", values)
            return [self._row._make(self._read(row, cursor.db)) for row in cursor.fetchall()]

    def _made(self, row: Sequence[SqlValue], db: BaseDatabaseWrapper) -> M:
        """Return an instance of the model for a row of the database."""
        return self._model.from_db(db.alias, self.names, self._read(row, db))

    def _read(self, row: Sequence[SqlValue], db: BaseDatabaseWrapper) -> list[SqlValue]:
        """Return the values of a row of the database, converted as Django does."""
        found = list(row)
        for n in self._jsons:
            found[n] = json.loads(found[n]) if found[n] != "{}" else {}
        for n in self._times:  # SQLite stores times without a zone
            if found[n] is not None and found[n].tzinfo is None:
                found[n] = found[n].replace(tzinfo=db.timezone)
        return found

    def add(self, rows: Iterable[object], cursor: CursorWrapper) -> None:
        """Insert rows. Each is an object with the columns as attributes."""
        execute_rows(cursor, self.insert, [self.stored(row, cursor.db) for row in rows])

    def save(self, row: M, cursor: CursorWrapper) -> None:
        """Insert a new row, or update all columns of a stored row."""
        if row._state.adding:
            self.add([row], cursor)
        else:
            id, *others = self.stored(row, cursor.db)
            cursor.execute(self._update, [*others, id])

    def stored(self, row: object, db: BaseDatabaseWrapper) -> list[SqlValue]:
        """Return the values of a row's columns, converted for the database driver."""
        values = list(self.values(row))
        for n, convert in self._conversions.items():
            values[n] = convert(values[n], db)
        return values

    def changed(
        self, row: object, before: Sequence[object], db: BaseDatabaseWrapper
    ) -> dict[str, SqlValue]:
        """Return the changed columns of a row: each name with the new value, converted for the
        database driver. `before` has the old values of all columns.
        """
        columns = zip(self.names, self.values(row), before, strict=True)
        changed = {name: value for name, value, old in columns if value != old}
        for n, convert in self._conversions.items():
            if (name := self.names[n]) in changed:
                changed[name] = convert(changed[name], db)
        return changed


def _tuple_of(names: Sequence[str]) -> type[NamedRow]:
    """Return a class of named tuples with these fields."""
    return namedtuple("Row", names)


def _json(value: JsonDict, _: BaseDatabaseWrapper) -> str:
    """Return a JSON value as text for the database driver."""
    return json.dumps(value) if value else "{}"


def _time(value: datetime | None, db: BaseDatabaseWrapper) -> datetime | str | None:
    """Return a time for the database driver. For SQLite, this is text."""
    return value if value is None or db.vendor != "sqlite" else _text(value, db.timezone)


@lru_cache(maxsize=16)
def _text(time: datetime, zone: tzinfo) -> str:
    """Return a time as SQLite stores it. Cached, because all rows of a change have the same
    time.
    """
    return str(make_naive(time, zone))


def execute_rows(cursor: CursorWrapper, sql: str, rows: Sequence[Values]) -> None:
    """Execute a statement once for each row."""
    if len(rows) == 1:
        cursor.execute(sql, rows[0])
    elif rows:
        cursor.executemany(sql, rows)
