"""The check of what SQLite stores in the columns of a conversation.

A column of SQLite takes values of any type. Python and SQL then read them differently: 2 in a
column of yes and no is yes in SQL, and no in Python. Of a name that JSON has twice, Python reads
the last value and SQLite the first; 'now' is a time in SQL only, and times are compared as texts.
PostgreSQL takes none but the column's own.
"""

from __future__ import annotations

from functools import cache

from django.db.models import Field, ForeignKey, Model

from chatmemory import database
from chatmemory.ledger.contradictions import Contradicted
from chatmemory.models import Memory, Message, Stay, Step

_TEXT = "typeof({0}) = 'text'"
_NUMBER = "typeof({0}) = 'integer'"
# As Django writes them: a name only once in each object, and a time in UTC without a zone
_ONCE = """CASE WHEN json_valid({0}) THEN NOT EXISTS (
    SELECT 1 FROM json_tree({0}) GROUP BY parent, key HAVING count(*) > 1) ELSE 0 END"""
_OWN_FORM = """datetime(substr({0}, 1, 19)) IS substr({0}, 1, 19) AND (length({0}) = 19
    OR substr({0}, 20) GLOB '.[0-9][0-9][0-9][0-9][0-9][0-9]')"""
_RIGHT = {
    "BigIntegerField": _NUMBER,
    "IntegerField": _NUMBER,
    "BooleanField": _NUMBER + " AND {0} IN (0, 1)",
    "BinaryField": "typeof({0}) = 'blob'",
    "CharField": _TEXT,
    "TextField": _TEXT,
    "JSONField": f"{_TEXT} AND {_ONCE}",
    "DateTimeField": f"{_TEXT} AND {_OWN_FORM}",
}
_TABLES = (
    (Memory, "id", "id"),
    (Step, "memory_id", "n"),
    (Message, "memory_id", "seq"),
    (Stay, "memory_id", "n"),
)


def check_types(memory_id: str) -> None:
    """Raise Contradicted for the first row with a value that is none of its column."""
    if database.connection().vendor != "sqlite":
        return
    for model, key, number in _TABLES:
        with database.connection().cursor() as cursor:
            cursor.execute(_first_wrong(model, key, number), [memory_id])
            for n, column in cursor.fetchall():
                row = "the conversation" if model is Memory else f"{model._meta.model_name} {n}"
                raise Contradicted(
                    row, f"{column} has a value of another type or form than its column"
                )


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
