"""Long texts, which go to SQLite encoded.

Its driver encodes each text that it is given and keeps the bytes with the text, whose characters
take four bytes each where one of them is an emoji. What is encoded here lets the text go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from django.db.models import Model, TextField

from chatmemory import database
from chatmemory.core.codec import LONG


def encode(model: type[Model], rows: Iterable[Any]) -> bool:
    """Encode the long texts in the values of rows, lists in the order of the columns.

    Return whether there are any; then the rows are to be inserted with `marks_of`.
    """
    if database.connection().vendor != "sqlite":
        return False
    found = False
    for n in _texts(model):
        for row in rows:
            if row[n] is not None and len(row[n]) > LONG:
                row[n], found = row[n].encode(), True
    return found


def marks_of(model: type[Model]) -> list[str]:
    """Return what stands for the value of each column, where texts may be encoded."""
    fields, texts = model._meta.local_concrete_fields, _texts(model)
    return ["CAST(%s AS TEXT)" if n in texts else "%s" for n in range(len(fields))]


@cache
def _texts(model: type[Model]) -> Sequence[int]:
    """Return the positions of the columns with texts of any length."""
    fields = enumerate(model._meta.local_concrete_fields)
    return [n for n, each in fields if isinstance(each, TextField)]
