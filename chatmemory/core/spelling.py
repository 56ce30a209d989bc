"""JSON text in Jackson's spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from chatmemory.core.exceptions import InvalidMessage

# An escaped backslash matches too, so that `\\u001f` within a text stays as it is.
_LOWER_CASED = re.compile(r"\\u00[0-9a-f]{2}|\\\\")


def write_json(value: Any) -> str:
    """Return compact JSON in Jackson's spelling: `\\u001F` for controls, `1.0E20` for floats.

    Raises InvalidMessage for a value that JSON cannot express.
    """
    parts: list[str] = []
    try:
        _put(value, parts)
    except RecursionError as error:
        raise InvalidMessage("the message is nested too deeply to be written") from error
    return "".join(parts)


def quoted(text: str) -> str:
    """Return a text as `write_json` spells it."""
    found: str = json.encoder.encode_basestring(text)
    if "\\u00" not in found:
        return found
    return _LOWER_CASED.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), found)


def _put(value: Any, parts: list[str]) -> None:
    match value:
        case str():
            parts.append(quoted(value))
        case dict():
            _put_object(value, parts)
        case list() | tuple() | Iterator():
            _put_list(value, parts)
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case int():
            parts.append(_int(value))
        case float():
            parts.append(_float(value))
        case Mapping():
            _put_object(value, parts)
        case _:
            raise InvalidMessage(f"a {type(value).__name__} cannot be written as JSON")


def _put_object(value: Mapping[Any, Any], parts: list[str]) -> None:
    before = "{"
    for key, each in value.items():
        parts.append(f"{before}{quoted(str(key))}:")
        _put(each, parts)
        before = ","
    parts.append("}" if value else "{}")


def _put_list(values: Iterable[Any], parts: list[str]) -> None:
    before = "["
    for each in values:
        parts.append(before)
        _put(each, parts)
        before = ","
    parts.append("[]" if before == "[" else "]")


def _int(number: int) -> str:
    try:
        return str(number)
    except ValueError as error:
        raise InvalidMessage("a number has too many digits") from error


def _float(number: float) -> str:
    """Return a float as Java's Double.toString does: plain from 0.001 up to 10,000,000."""
    if number != number or number in (float("inf"), float("-inf")):
        raise InvalidMessage("NaN and Infinity cannot be written as JSON")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
