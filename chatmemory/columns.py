"""Lets a model declare a database column in one place, at its field:

    mood = declared(
        models.CharField(max_length=20, null=True, help_text="the mood of the speaker"),
        Column(of=mood_of, sealed_since=5),
    )

The declaration decides how the column is written and read: in archives, branches, redactions,
digests, simulations, the API and the rows for templates. Besides, a new column needs a migration
and a change of a template. Then write the golden pages (stored pages of the tests) and the examples
of the API again.

Columns of `Message`, `Stay` and `Step` can be declared. Most of their columns have no declaration:
the module `inserted` writes these columns, and `reading.rows` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.db.models import Field, Model

ColumnValues = dict[str, Any]  # by name: each of the type of its column
F = TypeVar("F", bound="Field[Any, Any]")  # of any type
T = TypeVar("T")

_DECLARED = "chatmemory_column"  # the attribute of a field that has its Column


@dataclass(frozen=True)
class Column:
    """The declaration of a database column. It has either `sealed_since` or `unsealed`. Raises
    TypeError for both or neither.

    - `of`: the function that returns the column's value for a new row. Its argument is the
      `NewMessage`, the `Entry` of a stay, or the `Memory` after a step.
    - `sealed_since`: the first version of digests that covers the column; 0 if no digest covers the
      column. A new column needs a new version: 1 more than the highest version in
      `inspector.rooms.integrity.chain`.
    - `unsealed`: the reason why no digest covers the column, or "".
    - `hidden`: the reason why neither pages nor the API show the column; "" if they show it.
    - `has_words`: whether the column has text of messages. If True, a redaction sets the column to
      the result of `of` for the replacement message.
    - `is_filled_in`: whether a migration has set the column in rows that are older than the column.
      If False, the column is None in these rows.
    """

    of: Callable[[Any], object]  # a NewMessage, an Entry or a Memory
    sealed_since: int = 0
    unsealed: str = ""
    hidden: str = ""
    has_words: bool = True
    is_filled_in: bool = False

    def __post_init__(self) -> None:
        """Raise TypeError unless the column has either `sealed_since` or `unsealed`."""
        if bool(self.sealed_since) == bool(self.unsealed):
            raise TypeError(
                "a column must have `sealed_since`, or say in `unsealed` why no digest covers the "
                "column"
            )


def declared(field: F, column: Column) -> F:
    """Attach `column`, the declaration of a database column, to the field of a model. Returns the
    field.
    """
    setattr(field, _DECLARED, column)
    return field


@cache
def columns_of(model: type[Model]) -> Mapping[str, Column]:
    """Return the declared columns of a model, by name, in the order of its fields."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {
        name: getattr(field, _DECLARED)
        for name, field in fields.items()
        if hasattr(field, _DECLARED)
    }


@cache
def shown_columns(model: type[Model]) -> tuple[str, ...]:
    """Return the names of a model's declared columns (see `Column`) that pages and the API show."""
    return tuple(name for name, column in columns_of(model).items() if not column.hidden)


def words_in(model: type[Model]) -> tuple[str, ...]:
    """Return the names of a model's declared columns (see `Column`) that contain text of messages.
    A redaction must erase this text.
    """
    return tuple(name for name, column in columns_of(model).items() if column.has_words)


def with_columns(model: type[Model], only_shown: bool = False) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that adds the declared columns of a model to a dataclass, each with
    the default None.

    Place this decorator below `dataclass`. With `only_shown`, hidden columns are left out.
    """
    names = shown_columns(model) if only_shown else tuple(columns_of(model))

    def add(kind: type[T]) -> type[T]:
        for name in names:
            kind.__annotations__[name] = "Any"
            setattr(kind, name, None)
        return kind

    return add


def fill_in(
    row: object, model: type[Model], source: object, known: Mapping[str, object] | None = None
) -> None:
    """Set the declared columns of a new row. A value is taken from `known` or, if it is not there,
    computed from `source` (see `Column.of`).
    """
    for name, column in columns_of(model).items():
        setattr(row, name, known[name] if known and name in known else column.of(source))


def redacted_columns(model: type[Model], replacement: object) -> ColumnValues:
    """Return the new values of the declared columns that a redaction must change, by column name
    (see `Column.has_words`).

    The values are computed from `replacement`, the `NewMessage` that replaces the redacted message.
    """
    columns = columns_of(model)
    return {name: columns[name].of(replacement) for name in words_in(model)}


def shown_values(model: type[Model], row: object) -> ColumnValues:
    """Return the values of a row's declared columns (see `Column`), by column name. Columns that
    neither pages nor the API show are left out.
    """
    names = shown_columns(model)
    return {name: getattr(row, name) for name in names} if names else {}


def values_of(model: type[Model], row: object) -> ColumnValues:
    """Return the values of a row's declared columns (see `Column`), by column name."""
    return {name: getattr(row, name) for name in columns_of(model)}
