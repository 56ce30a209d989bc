"""Long texts, which go to the database encoded.

Drivers encode each text that they are given and keep the bytes beside the text, whose characters
take four bytes each where one of them is an emoji. What is encoded here lets the text go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, cast

from django.db.models import Model, TextField

from chatmemory import database
from chatmemory.core.codec import encoded_parts

SHORT = 1_000  # characters
# What makes a text of encoded bytes. SQLite's leaves a text as it is.
_DECODED = {"sqlite": "CAST(%s AS TEXT)", "postgresql": "convert_from(%s, 'UTF8')"}


class LongText(bytes):
    """A text that is encoded."""


def compact(text: str) -> str:
    """Return a text of a new row: a LongText if it is long and its driver takes one."""
    if isinstance(text, LongText) or text.isascii() or len(text) <= SHORT:
        return text
    if database.connection().vendor not in _DECODED:
        return text
    return cast("str", LongText(b"".join(encoded_parts(text))))


def are_in(model: type[Model], rows: Iterable[Sequence[Any]]) -> bool:
    """Return whether some of the values of rows, in the order of the columns, are encoded.

    These rows are to be inserted with `marks_of`.
    """
    return any(isinstance(row[n], LongText) for n in _texts(model) for row in rows)


def marks_of(model: type[Model]) -> list[str]:
    """Return what stands for the value of each column, where texts are encoded."""
    fields, texts = model._meta.local_concrete_fields, _texts(model)
    decoded = _DECODED[database.connection().vendor]
    return [decoded if n in texts else "%s" for n in range(len(fields))]


def encoded(model: type[Model], rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return the rows for `marks_of`, with all texts encoded; SQLite takes both kinds."""
    if database.connection().vendor == "sqlite":
        return list(rows)
    texts = _texts(model)
    return [
        [
            value.encode() if n in texts and isinstance(value, str) else value
            for n, value in enumerate(row)
        ]
        for row in rows
    ]


@cache
def _texts(model: type[Model]) -> Sequence[int]:
    """Return the positions of the columns with texts of any length."""
    fields = enumerate(model._meta.local_concrete_fields)
    return [n for n, each in fields if isinstance(each, TextField)]
