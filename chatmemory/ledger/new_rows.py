"""Rows that are not stored yet.

Django's constructor takes as long as the database needs to store a row, and its rows take several
times the memory: a list of 10,000 short messages makes 20,000 of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from functools import cache
from typing import Any, TypeVar

from django.db.models import Model

M = TypeVar("M", bound=Model)


def new_row(model: type[M], **values: Any) -> M:
    """Return a row that can be inserted. It has the columns of the model, and nothing else of it.

    A column without a value is null.
    """
    row: M = _maker(model)(**values)
    return row


@cache
def _maker(model: type[Model]) -> Callable[..., Any]:
    fields = model._meta.local_concrete_fields
    columns = [(each.attname, Any, field(default=None)) for each in fields]
    known = {"_meta": model._meta}
    return make_dataclass(f"New{model.__name__}", columns, slots=True, eq=False, namespace=known)
