"""Cursor pagination of long lists.

A cursor has the sort value and the primary key of the first or last row of a page. The database
finds the next page by comparing rows with these values, so every page takes the same time. Rows
that are added to other pages, or removed from them, do not shift a page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import Combinable

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.json_values import JsonValue

_INTEGER_END = 2**63

Row = TypeVar("Row", covariant=True)
Stored = TypeVar("Stored", bound=Model)


@dataclass(frozen=True)
class SortKey:
    """What a list is sorted by: an expression, and the type of its values. Rows with equal values
    are sorted by primary key.
    """

    expression: Combinable
    type: type[datetime] | type[int] | type[str] = int


@dataclass(frozen=True)
class CursorPage(Generic[Row]):
    """A page of a list. `previous` and `next` are the cursors of the neighboring pages, or None if
    there is no such page.
    """

    rows: tuple[Row, ...]
    previous: str | None
    next: str | None


@dataclass(frozen=True)
class _Cursor:
    """The first or last row of a page. With `is_backward`, the page before this row is read, else
    the page after it.
    """

    value: datetime | str | int
    pk: str
    is_backward: bool

    def beyond(self, upwards: bool) -> Q:
        """Return the condition (value <= edge) AND (value < edge OR pk < edge's pk).

        Databases use an index for the first term; the OR alone would need a scan.
        """
        side = "gt" if upwards else "lt"
        strictly = Q(**{f"sort_value__{side}": self.value}) | Q(**{f"pk__{side}": self.pk})
        return Q(**{f"sort_value__{side}e": self.value}) & strictly


def page_by_cursor(
    rows: QuerySet[Stored],
    key: SortKey,
    *,
    descending: bool,
    cursor: str,
    size: int,
    narrowed: Callable[[QuerySet[Model, Stored], int], QuerySet[Stored]] | None = None,
) -> CursorPage[Stored]:
    """Return the page of `rows` at a cursor, or the first page for an empty cursor.

    `narrowed` filters rows, such as by a search. It gets the sorted rows and a number n, and
    returns a query; only the first n rows of this query are read.

    Raises InvalidValue for a malformed cursor, or a cursor of another sort key.
    """
    start = _read(cursor, key.type) if cursor else None
    is_backward = start is not None and start.is_backward
    upwards = descending is is_backward
    sorted_rows = rows.annotate(sort_value=key.expression)
    sorted_rows = sorted_rows.filter(start.beyond(upwards)) if start else sorted_rows
    order = ("sort_value", "pk") if upwards else ("-sort_value", "-pk")
    sorted_rows = sorted_rows.order_by(*order)
    found = list((narrowed(sorted_rows, size + 1) if narrowed else sorted_rows)[: size + 1])
    has_more, found = len(found) > size, found[:size]
    if is_backward:
        found.reverse()
    has_previous = has_more if is_backward else start is not None
    has_next = has_more or is_backward
    return CursorPage(
        rows=tuple(found),
        previous=_write(found[0], is_backward=True) if found and has_previous else None,
        next=_write(found[-1], is_backward=False) if found and has_next else None,
    )


def _write(row: Any, *, is_backward: bool) -> str:  # `sort_value` is an annotation of the query
    """Return the cursor of a row."""
    value = row.sort_value
    value = value.isoformat() if isinstance(value, datetime) else value
    parts = json.dumps([value, row.pk, is_backward])
    return base64.urlsafe_b64encode(parts.encode()).decode()


def _read(text: str, type: type) -> _Cursor:
    try:
        value, pk, is_backward = json.loads(base64.urlsafe_b64decode(text.encode()))
        if not isinstance(is_backward, bool):
            raise ValueError("not a direction")
        return _Cursor(_READERS[type](value), _text(pk), is_backward)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidValue("the cursor is invalid: start again at the first page") from error


def _moment(value: JsonValue) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("not a time with a time zone")
    return moment.astimezone(UTC)


def _text(value: JsonValue) -> str:
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("not text that a database can compare")
    return value


def _integer(value: JsonValue) -> int:
    if type(value) is not int or abs(value) >= _INTEGER_END:
        raise ValueError("not an integer that a database can compare")
    return value


_READERS: dict[type, Callable[[JsonValue], datetime | str | int]] = {
    datetime: _moment,
    str: _text,
    int: _integer,
}
