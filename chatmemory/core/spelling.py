"""JSON text, in Jackson's spelling and in Python's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from chatmemory.core.exceptions import InvalidMessage

# Longer texts are quoted in pieces. Python keeps one, two or four bytes for each character of a
# string, so that a single emoji makes four times the memory of it, and of each copy.
LONG = 2**16  # characters
_TOGETHER = 1_000  # pieces

# An escaped backslash matches too, so that `\\u001f` within a text stays as it is.
_LOWER_CASED = re.compile(r"\\u00[0-9a-f]{2}|\\\\")


def write_json(value: Any) -> str:
    """Return compact JSON in Jackson's spelling: `\\u001F` for controls, `1.0E20` for floats.

    Raises InvalidMessage for a value that JSON cannot express.
    """
    return _written(value, _Pieces(_quoted, _float))


def quoted_parts(text: str) -> Iterator[str]:
    """Return a text as `write_json` spells it; of a long one, each part alone."""
    return _quoted_parts(text, _quoted)


def plain_json(value: Any) -> str:
    """Return what `json.dumps` does, compact and with characters as they are, in less memory.

    Raises InvalidMessage for a value that JSON cannot express.
    """
    return _written(value, _Pieces(json.encoder.encode_basestring, float.__repr__))


def _written(value: Any, pieces: _Pieces) -> str:
    try:
        _put(value, pieces)
    except RecursionError as error:
        raise InvalidMessage("the message is nested too deeply to be written") from error
    return pieces.text()


def encoded_parts(text: str, errors: str = "strict") -> Iterator[bytes]:
    """Return a text in UTF-8, in parts. Raises UnicodeEncodeError for a lone surrogate.

    Python takes four bytes for each character to encode it as a whole, if one is an emoji.
    """
    return (part.encode("utf-8", errors) for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    return (text[at : at + LONG] for at in range(0, len(text), LONG))


class _Pieces(list[str]):
    """The last pieces of a text; those before them are put together, as each alone takes 50 bytes
    more than its characters. `quoted` spells a string, and `real` a number with a fraction.
    """

    def __init__(self, quoted: Callable[[str], str], real: Callable[[float], str]) -> None:
        self.quoted, self.real = quoted, real
        self._whole: list[str] = []

    def settle(self) -> None:
        self._whole.append("".join(self))
        self.clear()

    def text(self) -> str:
        return "".join([*self._whole, *self])


def _put(value: Any, pieces: _Pieces) -> None:
    match value:
        case str():
            _put_text(value, pieces)
        case dict():
            _put_object(value, pieces)
        case list() | tuple() | Iterator():
            _put_list(value, pieces)
        case None:
            pieces.append("null")
        case bool():
            pieces.append("true" if value else "false")
        case int():
            pieces.append(_int(value))
        case float():
            pieces.append(pieces.real(value))
        case Mapping():
            _put_object(value, pieces)
        case _:
            raise InvalidMessage(f"a {type(value).__name__} cannot be written as JSON")


def _put_object(value: Mapping[Any, Any], pieces: _Pieces) -> None:
    before, quoted = "{", pieces.quoted
    for key, each in value.items():
        name = quoted(str(key))
        if type(each) is str and len(each) <= LONG:
            pieces.append(f"{before}{name}:{quoted(each)}")
        else:
            pieces.append(f"{before}{name}:")
            _put(each, pieces)
        before = ","
        if len(pieces) > _TOGETHER:
            pieces.settle()
    pieces.append("}" if value else "{}")


def _put_list(values: Iterable[Any], pieces: _Pieces) -> None:
    before = "["
    for each in values:
        pieces.append(before)
        _put(each, pieces)
        before = ","
        if len(pieces) > _TOGETHER:
            pieces.settle()
    pieces.append("[]" if before == "[" else "]")


def _put_text(text: str, pieces: _Pieces) -> None:
    pieces += _quoted_parts(text, pieces.quoted)


def _quoted_parts(text: str, quoted: Callable[[str], str]) -> Iterator[str]:
    if len(text) <= LONG:
        yield quoted(text)
        return
    yield '"'
    for part in _parts(text):
        yield quoted(part)[1:-1]
    yield '"'


def _quoted(text: str) -> str:
    quoted: str = json.encoder.encode_basestring(text)
    if "\\u00" not in quoted:
        return quoted
    return _LOWER_CASED.sub(lambda found: found[0][:2] + found[0][2:].upper(), quoted)


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
