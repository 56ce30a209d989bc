"""Long texts, which go to the database encoded.

Drivers encode each text that they are given and keep the bytes beside the text, whose characters
take four bytes each where one of them is an emoji. What is encoded here lets the text go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, cast

import psycopg
from django.db.models import Model, TextField
from psycopg.adapt import Dumper

from chatmemory import database

SHORT = 1_000  # characters
TAKEN_BY = ("sqlite", "postgresql")


class LongText(bytes):
    """A text that is encoded."""


class _EncodedText(Dumper):
    """Takes a LongText to PostgreSQL as a text, where other bytes would be a bytea."""

    def dump(self, obj: LongText) -> bytes:
        return obj


psycopg.adapters.register_dumper(LongText, _EncodedText)


def compact(text: str) -> str:
    """Return a text of a new row: a LongText if it is long and its driver takes one."""
    if text.isascii() or len(text) <= SHORT or database.connection().vendor not in TAKEN_BY:
        return text
    return cast("str", LongText(text.encode()))


def are_in(model: type[Model], rows: Iterable[Sequence[Any]]) -> bool:
    """Return whether some of the values of rows, in the order of the columns, are encoded.

    These rows are to be inserted with `marks_of`.
    """
    return any(isinstance(row[n], LongText) for n in _texts(model) for row in rows)


def marks_of(model: type[Model]) -> list[str]:
    """Return what stands for the value of each column, where texts may be encoded."""
    fields, texts = model._meta.local_concrete_fields, _texts(model)
    return ["CAST(%s AS TEXT)" if n in texts else "%s" for n in range(len(fields))]


@cache
def _texts(model: type[Model]) -> Sequence[int]:
    """Return the positions of the columns with texts of any length."""
    fields = enumerate(model._meta.local_concrete_fields)
    return [n for n, each in fields if isinstance(each, TextField)]
