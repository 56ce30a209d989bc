"""The check of what SQLite stores in the columns of a conversation.

A column of SQLite takes values of any type. Python and SQL then read them differently: 2 in a
column of yes and no is yes in SQL, and no in Python. PostgreSQL takes none but the column's own.
"""

from __future__ import annotations

from functools import cache

from django.db.models import Field, ForeignKey, Model

from chatmemory import database
from chatmemory.ledger.contradictions import Contradicted
from chatmemory.models import Memory, Message, Stay, Step

_TEXT = "typeof({0}) = 'text'"
_NUMBER = "typeof({0}) = 'integer'"
_RIGHT = {
    "BigIntegerField": _NUMBER,
    "IntegerField": _NUMBER,
    "BooleanField": _NUMBER + " AND {0} IN (0, 1)",
    "BinaryField": "typeof({0}) = 'blob'",
    "CharField": _TEXT,
    "TextField": _TEXT,
    "JSONField": _TEXT,
    "DateTimeField": _TEXT + " AND julianday({0}) IS NOT NULL",
}
_TABLES = (
    (Memory, "id", "id"),
    (Step, "memory_id", "n"),
    (Message, "memory_id", "seq"),
    (Stay, "memory_id", "n"),
)


def check_types(memory_id: str) -> None:
    """Raise Contradicted for the first row with a value of another type than its column has."""
    if database.connection().vendor != "sqlite":
        return
    for model, key, number in _TABLES:
        with database.connection().cursor() as cursor:
            cursor.execute(_first_wrong(model, key, number), [memory_id])
            for n, column in cursor.fetchall():
                row = "the conversation" if model is Memory else f"{model._meta.model_name} {n}"
                raise Contradicted(row, f"{column} has a value of another type than its column")


@cache
def _first_wrong(model: type[Model], key: str, number: str) -> str:
    """Return the query of the number of the first wrong row, and of its first wrong column."""
    fields = [each for each in model._meta.concrete_fields if not isinstance(each, ForeignKey)]
    cases = " ".join(f"WHEN NOT ({_right(each)}) THEN '{each.column}'" for each in fields)
    return (
        f"SELECT {number}, CASE {cases} END AS wrong FROM {model._meta.db_table} "  # noqa: S608
        f"WHERE {key} = %s AND wrong IS NOT NULL ORDER BY {number} LIMIT 1"
    )


def _right(field: Field[object, object]) -> str:
    right = _RIGHT[field.get_internal_type()].format(f'"{field.column}"')
    return f'"{field.column}" IS NULL OR {right}' if field.null else right
