"""Statements of the hot path, which are compiled once.

Django compiles a query anew each time it runs. For the small statements of an add that takes
several times as long as the database needs for them (benchmarks/add.py). Here Django compiles a
query when it is first used, and inserts and updates are made from the columns of a model, so there
is no SQL by hand that could differ from the models. What is not in every add, or in every read of a
window or of a page, uses the ORM as usual.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    ForeignKey,
    IntegerField,
    JSONField,
    Model,
    QuerySet,
    TextField,
)
from django.db.models.base import ModelState
from django.db.models.query import ModelIterable, ValuesListIterable

from chatmemory import database
from chatmemory.ledger.writes import NOTHING, Insertion, Write
from chatmemory.models import Stay

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Model)

Converter = Callable[[Any, Any, BaseDatabaseWrapper], Any]

_FIRST_INTEGER = 2**62  # stands for an argument while a query is compiled
_STORED_AS_THEY_ARE = (
    *(BigIntegerField, BinaryField, BooleanField, CharField, ForeignKey, IntegerField, TextField),
)
_STORED = "_stored"  # the attribute of a row with the values that the database has


@dataclass(frozen=True)
class _Plan:
    """The SQL of a query, and how its parameters and its rows are made.

    A parameter is a constant, or the position of an argument. A null is not converted. `make` is
    called with the alias of the database and the values of a row. Without it rows stay tuples.
    """

    sql: str
    parameters: Sequence[tuple[int | None, Any]]
    converters: Sequence[tuple[int, Converter, Any]]
    make: Callable[[str, Sequence[Any]], Any] | None

    def filled(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the parameters for these arguments."""
        return [value if n is None else arguments[n] for n, value in self.parameters]

    def rows(self, found: list[Any], connection: BaseDatabaseWrapper) -> list[Any]:
        """Return what the query set would yield for the rows that were found."""
        if self.make is None and not self.converters:
            return found
        return [self._row(values, connection) for values in found]

    def _row(self, values: Sequence[Any], connection: BaseDatabaseWrapper) -> Any:
        converted = list(values)
        for column, convert, expression in self.converters:
            value = converted[column]
            if value is not None:
                converted[column] = convert(value, expression, connection)
        return self.make(connection.alias, converted) if self.make else tuple(converted)


class Compiled(Generic[P, R]):
    """A query that is compiled once for each kind of database.

    `build` gets arguments of the types `str` and `int`, and returns a query set of instances, or of
    tuples with or without names (`values_list`), where each argument is the value of a condition.
    """

    def __init__(self, build: Callable[P, QuerySet[Any, R]]) -> None:
        self._build = build
        self._plans: dict[str, _Plan] = {}

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> list[R]:
        """Return the rows of the query for these arguments, which are positional."""
        connection = database.connection()
        plan = self._plans.get(connection.vendor)
        if plan is None:
            plan = self._plans[connection.vendor] = self._compiled(connection.alias)
        with database.cursor(connection) as cursor:
            cursor.execute(plan.sql, plan.filled(arguments))
            return plan.rows(cursor.fetchall(), connection)

    def _compiled(self, using: str) -> _Plan:
        types = get_type_hints(self._build)
        types.pop("return", None)
        stands_for: dict[Any, int] = {
            f"argument {n}" if each is str else _FIRST_INTEGER + n: n
            for n, each in enumerate(types.values())
        }
        query_set = self._build(*stands_for)  # type: ignore[call-arg]
        compiler = query_set.query.get_compiler(using)
        sql, parameters = compiler.as_sql()
        columns = [selected[0] for selected in compiler.select]
        return _Plan(
            sql,
            [(stands_for.get(value), value) for value in parameters],
            [
                (n, convert, expression)
                for n, (converters, expression) in compiler.get_converters(columns).items()
                for convert in converters
            ],
            _maker(query_set, compiler.select),
        )


def _maker(
    query_set: QuerySet[Any, Any], selected: Sequence[tuple[Any, Any, str | None]]
) -> Callable[..., Any] | None:
    """Return what makes a row of the query set; None if its rows are tuples without names.

    What is selected has an alias if it is an annotation.
    """
    if query_set._iterable_class is ValuesListIterable:
        return None
    if query_set._iterable_class is ModelIterable:
        names = [alias or column.target.attname for column, _, alias in selected]
        return lambda using, values: _stored_row(query_set.model, using, names, values)
    row = namedtuple("Row", query_set._fields)  # type: ignore[misc, attr-defined]
    return lambda using, values: row._make(values)


def _stored_row(
    model: type[Model], using: str, names: Sequence[str], values: Sequence[Any]
) -> Model:
    """Return a row that is stored, which remembers its values for `change`.

    Django's constructor takes as long as the database needs to find the row.
    """
    row, state = model.__new__(model), ModelState()
    state.adding, state.db = False, using
    stored = dict(zip(names, values, strict=True))
    row.__dict__ |= {"_state": state, _STORED: stored, **stored}
    return row


@dataclass(frozen=True)
class _Statement:
    """SQL with a parameter for each of the fields, in the same order."""

    sql: str
    fields: Sequence[Field[Any, Any]]

    @cached_property
    def values_of(self) -> Callable[[Model], Sequence[Any]]:
        """What takes the values of the fields from a row."""
        return attrgetter(*[field.attname for field in self.fields])

    @cached_property
    def _prepared(self) -> Sequence[tuple[int, Callable[[Any], Any]]]:
        """The position of each field that is not stored as it is, and what prepares its values."""
        return [
            (n, _PREPARING.get(type(each)) or partial(_stored_value, each))
            for n, each in enumerate(self.fields)
            if not isinstance(each, _STORED_AS_THEY_ARE)
        ]

    def with_values(self, rows: Iterable[Sequence[Any]]) -> Write:
        """Return the execution of the SQL for the values of each row.

        An object that comes again in a column, such as the time of a change, is prepared once.
        """
        values = [list(row) for row in rows]
        if not self._prepared:
            return Write(self.sql, values)
        for n, prepare in self._prepared:
            known: dict[int, tuple[Any, Any]] = {id(None): (None, None)}
            for row in values:
                value = row[n]
                if id(value) not in known:
                    known[id(value)] = value, prepare(value)
                row[n] = known[id(value)][1]
        return Write(self.sql, values)


def _stored_value(field: Field[Any, Any], value: Any) -> Any:
    return field.get_db_prep_save(value, database.connection())


def _stored_time(value: datetime) -> Any:
    return _adapted_time(value, database.alias())


@lru_cache(maxsize=8)
def _adapted_time(value: datetime, using: str) -> Any:
    """Return a time as the database takes it. The rows of a change have the same one."""
    return database.connection().ops.adapt_datetimefield_value(value)


def _stored_json(value: Any) -> Any:
    return database.connection().ops.adapt_json_value(value, None)


_PREPARING: Mapping[type, Callable[[Any], Any]] = {
    DateTimeField: _stored_time,
    JSONField: _stored_json,
}


def insertion(rows: Sequence[Model]) -> Write:
    """Return the insertion of rows of one model."""
    if not rows:
        return NOTHING
    write = _written(_insertion(rows[0]._meta.model), rows)
    return Insertion(write.sql, write.values)


def insertion_if_new(row: Model) -> Write:
    """Return the insertion of a row that does nothing if there is one with its key."""
    always = insertion([row])
    return Write(f"{always.sql} ON CONFLICT DO NOTHING", always.values)


def change(row: Model) -> Write:
    """Return the update of a row whose primary key is one column.

    Of a row that a compiled query has read, it writes only the columns that differ: SQLite renews
    the entry of every index of which a column is set, even to the same value.
    """
    stored, values = row.__dict__.get(_STORED), row.__dict__
    columns = _columns_besides_key(type(row))
    if stored is not None:
        columns = tuple([name for name in columns if values[name] != stored[name]])
    return _written(_change(type(row), columns), [row]) if columns else NOTHING


def endings(memory_id: str, endings: Mapping[int, tuple[int, str]]) -> Write:
    """Return the update that sets the step and the reason with which stays ended, by number."""
    runs = ((*ending, memory_id, first, last) for first, last, ending in _runs(endings))
    return _ending().with_values(runs) if endings else NOTHING


def _runs(endings: Mapping[int, tuple[int, str]]) -> Iterator[tuple[int, int, tuple[int, str]]]:
    """Yield the first and the last of numbers that follow one another and end alike."""
    numbers = iter(sorted(endings))
    first = last = next(numbers)
    for n in numbers:
        if n != last + 1 or endings[n] != endings[first]:
            yield first, last, endings[first]
            first = n
        last = n
    yield first, last, endings[first]


def _written(statement: _Statement, rows: Iterable[Model]) -> Write:
    return statement.with_values(map(statement.values_of, rows))


@cache
def _insertion(model: type[Model]) -> _Statement:
    fields = model._meta.local_concrete_fields
    columns, marks = ", ".join(map(_quoted, fields)), ", ".join(["%s"] * len(fields))
    into = f'INSERT INTO "{model._meta.db_table}" ({columns})'
    return _Statement(f"{into} VALUES ({marks})", fields)


@cache
def _columns_besides_key(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields if not field.primary_key)


@cache
def _change(model: type[Model], columns: Sequence[str]) -> _Statement:
    key = model._meta.pk
    changed = [_field(model, name) for name in columns]
    return _setting(model, changed, f"{_quoted(key)} = %s", [key])


@cache
def _ending() -> _Statement:
    ended = [_field(Stay, name) for name in ("left_step", "reason")]
    memory, n = _field(Stay, "memory"), _field(Stay, "n")
    condition = f"{_quoted(memory)} = %s AND {_quoted(n)} BETWEEN %s AND %s"
    return _setting(Stay, ended, condition, [memory, n, n])


def _setting(
    model: type[Model], changed: Sequence[Any], condition: str, compared: Sequence[Any]
) -> _Statement:
    """Return the statement that sets the changed fields of the rows that meet a condition."""
    changes = ", ".join(f"{_quoted(field)} = %s" for field in changed)
    sql = f'UPDATE "{model._meta.db_table}" SET {changes} WHERE {condition}'  # noqa: S608
    return _Statement(sql, [*changed, *compared])


def _field(model: type[Model], name: str) -> Any:
    return model._meta.get_field(name)


def _quoted(field: Field[Any, Any]) -> str:
    return f'"{field.column}"'
