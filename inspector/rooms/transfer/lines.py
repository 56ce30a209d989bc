"""Converts database rows to lines of JSON and back, in the format `chatmemory`.

A line is an object such as `{"message":3,"text":"Hello"}`. The first name is the kind of the row,
and its value is the key of the row. The other names are columns. Columns without a value are left
out. docs/formats-chatmemory.md describes all lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db.models import (
    BigIntegerField,
    BinaryField,
    BooleanField,
    DateTimeField,
    Field,
    IntegerField,
    JSONField,
    Model,
)

from chatmemory.columns import columns_of
from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.lookup import Bytes
from chatmemory.messages.field_checks import brief
from chatmemory.messages.ids import check_text
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step

VERSION = 1

# The id of a conversation is in its first line. A conversation that is being deleted is not
# exported.
_IN_NO_LINE = ("id", "memory_id", "deleted_at")
# Columns in lines of earlier versions that are now derived from the ledger
_FORMER = {
    *("missing_results", "dangling_call", "waiting_call", "oversized_step", "missed_step"),
    *("health", "problems", "refused_by", "ill_at"),
}


class LineOf:
    """Converts the rows of a table to lines of JSON and back. In a line `{"message":3,…}`,
    "message" is the `name` of this kind of row, and 3 is the value of the column `key`.
    """

    def __init__(self, name: str, model: type[Model], key: str) -> None:
        fields = {field.attname: field for field in model._meta.concrete_fields}
        self.name = name
        self._columns = {name: _Column(fields.pop(key))}
        self._columns |= {
            each: _Column(field) for each, field in fields.items() if each not in _IN_NO_LINE
        }

    def write(self, row: Model) -> str:
        values = {name: getattr(row, column.name) for name, column in self._columns.items()}
        return line({name: value for name, value in values.items() if not _is_nothing(value)})

    def read(self, fields: JsonMap) -> JsonDict:
        """Return the columns of a row from the `fields` of its line. Raises InvalidValue."""
        if unknown := fields.keys() - self._columns.keys() - _FORMER:
            raise InvalidValue(
                f"the line of a {self.name} has the unknown field {brief(min(unknown))}"
            )
        return {
            column.name: column.read(name, fields[name]) if name in fields else column.nothing(name)
            for name, column in self._columns.items()
        }


def line(values: JsonMap) -> str:
    """Return a line of JSON with the given names and values, in the same order."""
    return f"{{{','.join(f'{_json(name)}:{_json(value)}' for name, value in values.items())}}}"


def _is_nothing(value: JsonValue) -> bool:
    return value is None or value is False or value in ("", {})


def _plain(value: datetime | Bytes) -> str:
    """Return the JSON value of a time or of bytes."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.hex()


# PostgreSQL reorders the names in a JSON value.
_json = json.JSONEncoder(
    default=_plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True
).encode


def _bytes_of(value: JsonValue) -> bytes:
    return bytes.fromhex(value)


def _time_of(value: JsonValue) -> datetime:
    found = datetime.fromisoformat(value)
    if found.utcoffset() is None:
        raise ValueError("the time has no time zone")
    return found


def _same(value: JsonValue) -> JsonValue:
    return value


# The JSON type of each field, in words, and the function that makes the field's value.
_KINDS: dict[type, tuple[type, str, Callable[[JsonValue], JsonValue]]] = {
    BooleanField: (bool, "true or false", _same),
    IntegerField: (int, "a whole number", _same),
    JSONField: (dict, "an object", dict),
    BinaryField: (str, "bytes in hexadecimal", _bytes_of),
    DateTimeField: (str, "a time with a time zone", _time_of),
    Field: (str, "a text", _same),
}


class _Column:
    """Converts the values of one column to JSON and back."""

    def __init__(self, field: Field[Any, Any]) -> None:  # a column of any type
        self.name = field.attname
        self._field = field
        self._is_declared = field.attname in columns_of(field.model)
        kinds = (kind for fields, kind in _KINDS.items() if isinstance(field, fields))
        self._type, self._expected, self._of = next(kinds)
        self._choices = dict(field.flatchoices)
        self._most = 2 ** (63 if isinstance(field, BigIntegerField) else 31)

    def read(self, name: str, value: JsonValue) -> JsonValue:
        """Return the column's value from the value in a line. Raises InvalidValue."""
        try:
            if not isinstance(value, self._type) or type(value) is bool is not self._type:
                raise TypeError
            found = self._of(value)
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"{name} must be {self._expected}, not {brief(value)}") from error
        if self._type is int and not -self._most <= found < self._most:
            bounds = f"from {-self._most} to {self._most - 1}"
            raise InvalidValue(f"{name} must be {bounds}, not {found}")
        if isinstance(found, str):
            check_text(found, name)
            if len(found) > (self._field.max_length or len(found)):
                raise InvalidValue(
                    f"{name} can have at most {self._field.max_length} characters, but has "
                    f"{len(found):,}"
                )
        if self._choices and found not in self._choices:
            raise InvalidValue(
                f"{name} must be one of {', '.join(self._choices)}, but is: {brief(found)}"
            )
        return found

    def nothing(self, name: str) -> JsonValue:
        """Return the value of the column for a line that lacks it. Raises InvalidValue if the
        column is required.
        """
        if self._is_declared:
            return self._field.get_default()
        if self._field.null:
            return None
        if self._of not in (_same, dict) or self._type is int:
            raise InvalidValue(f"the field {name} is missing")
        return self._type()


CONVERSATION = LineOf("conversation", Memory, "id")
MESSAGE = LineOf("message", Message, "seq")
STAY = LineOf("stay", Stay, "n")
STEP = LineOf("step", Step, "n")
AUDIT = LineOf("audit", AuditEntry, "action")
