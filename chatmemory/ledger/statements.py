"""Statements of the hot path, which are compiled once.

Django compiles a query anew each time it runs. For the small statements of an add that takes
several times as long as the database needs for them (benchmarks/add.py). Here Django compiles a
query when it is first used, and inserts and updates are made from the columns of a model, so there
is no SQL by hand that could differ from the models. What is not in every add or in every read of a
window uses the ORM as usual.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BigIntegerField,
    BooleanField,
    CharField,
    Field,
    ForeignKey,
    IntegerField,
    Model,
    QuerySet,
    TextField,
)
from django.db.models.query import ModelIterable

from chatmemory import database
from chatmemory.models import Stay

P = ParamSpec("P")
R = TypeVar("R")

Converter = Callable[[Any, Any, BaseDatabaseWrapper], Any]

_FIRST_INTEGER = 2**62  # stands for an argument while a query is compiled
_STORED_AS_THEY_ARE = BigIntegerField, BooleanField, CharField, ForeignKey, IntegerField, TextField
_PLAIN = (str, int, bool, type(None))
_ENDING = (("left_step", "reason"), ("memory", "n"))


@dataclass(frozen=True)
class _Plan:
    """The SQL of a query, and how its parameters and its rows are made.

    A parameter is a constant, or the position of an argument. `make` is called with the alias of
    the database and the values of a row.
    """

    sql: str
    parameters: Sequence[tuple[int | None, Any]]
    converters: Sequence[tuple[int, Sequence[Converter], Any]]
    make: Callable[[str, Sequence[Any]], Any]

    def filled(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the parameters for these arguments."""
        return [value if n is None else arguments[n] for n, value in self.parameters]

    def row(self, values: Sequence[Any], connection: BaseDatabaseWrapper) -> Any:
        """Return what the query set would yield for the values of a row."""
        converted = list(values)
        for column, converters, expression in self.converters:
            for convert in converters:
                converted[column] = convert(converted[column], expression, connection)
        return self.make(connection.alias, converted)


class Compiled(Generic[P, R]):
    """A query that is compiled once for each kind of database.

    `build` gets arguments of the types `str` and `int`, and returns a query set of instances, or of
    tuples with names (`values_list` with `named`), where each argument is the value of a condition.
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
        with connection.cursor() as cursor:
            cursor.execute(plan.sql, plan.filled(arguments))
            return [plan.row(values, connection) for values in cursor.fetchall()]

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
            [(n, *each) for n, each in compiler.get_converters(columns).items()],
            _maker(query_set, [column.target.attname for column in columns]),
        )


def _maker(query_set: QuerySet[Any, Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return what makes a row of the query set."""
    if query_set._iterable_class is ModelIterable:
        return lambda alias, values: query_set.model.from_db(alias, names, values)
    row = namedtuple("Row", query_set._fields)  # type: ignore[misc, attr-defined]
    return lambda alias, values: row._make(values)


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
    def _prepared_by(self) -> Sequence[tuple[Field[Any, Any], bool]]:
        """The fields, and whether each stores plain values as they are."""
        return [(field, isinstance(field, _STORED_AS_THEY_ARE)) for field in self.fields]

    def execute(self, rows: Iterable[Sequence[Any]]) -> None:
        """Execute the SQL once for the values of each row."""
        connection = database.connection()
        prepared = [
            [
                value
                if is_plain and type(value) in _PLAIN
                else field.get_db_prep_save(value, connection)
                for (field, is_plain), value in zip(self._prepared_by, values, strict=True)
            ]
            for values in rows
        ]
        with connection.cursor() as cursor:
            cursor.executemany(self.sql, prepared)


def insert(rows: Sequence[Model]) -> None:
    """Insert rows of one model."""
    if rows:
        _write(_insertion(type(rows[0])), rows)


def update(row: Model) -> None:
    """Write all columns of a row that exists and whose primary key is one column."""
    _write(_change(type(row)), [row])


def end_stays(memory_id: str, endings: Mapping[int, tuple[int, str]]) -> None:
    """Set the step and the reason with which stays ended, by the numbers of the stays."""
    if endings:
        _ending().execute((step, reason, memory_id, n) for n, (step, reason) in endings.items())


def _write(statement: _Statement, rows: Iterable[Model]) -> None:
    statement.execute(map(statement.values_of, rows))


@cache
def _insertion(model: type[Model]) -> _Statement:
    fields = model._meta.local_concrete_fields
    columns, marks = ", ".join(map(_quoted, fields)), ", ".join(["%s"] * len(fields))
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES ({marks})'  # noqa: S608
    return _Statement(sql, fields)


@cache
def _change(model: type[Model]) -> _Statement:
    key = model._meta.pk
    changed = [field for field in model._meta.concrete_fields if field is not key]
    return _setting(model, changed, [key])


@cache
def _ending() -> _Statement:
    return _setting(Stay, *(map(Stay._meta.get_field, names) for names in _ENDING))


def _setting(model: type[Model], changed: Iterable[Any], keys: Iterable[Any]) -> _Statement:
    """Return the statement that sets the changed fields of the row with these keys."""
    changed, keys = list(changed), list(keys)
    changes = ", ".join(f"{_quoted(field)} = %s" for field in changed)
    condition = " AND ".join(f"{_quoted(field)} = %s" for field in keys)
    sql = f'UPDATE "{model._meta.db_table}" SET {changes} WHERE {condition}'  # noqa: S608
    return _Statement(sql, [*changed, *keys])


def _quoted(field: Field[Any, Any]) -> str:
    return f'"{field.column}"'
