"""Reads JSON text by the rules of Jackson, the Java library that LangChain4j uses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from sys import getsizeof, intern
from typing import IO, NamedTuple

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.field_checks import DEPTH_MAX, DIGITS_MAX
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.patterns import declared_pattern

ELEMENTS_FREE, ELEMENTS_MAX = 1_000, 500_000
SIZE_PER_ELEMENT = 8  # the shortest messages of OpenAI and LangChain4j have 9 to 10 characters
PROPERTIES_FREE = 100_000
SIZE_PER_PROPERTY = 13  # the shortest messages of LangChain4j have 4 in 54 characters
PROPERTIES_OF_ONE = 50_000

PIECE = 2**18  # characters of a file that are read at a time
OF_A_VALUE = 150  # bytes that a message takes for each of its values
LONGEST_SIGN = 12  # characters of values without an end mark: a number's exponent, -Infinity

_TOO_DEEP = f"the JSON is nested too deeply: at most {DEPTH_MAX} levels are read"
_SPACE = declared_pattern(r"[ \t\n\r]*")
_STRING = declared_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


def decode_json(text: str) -> JsonValue:
    """Return the first JSON value of a text. The rest is ignored, as in Jackson.

    Raises InvalidMessage.
    """
    if not isinstance(text, str):
        raise InvalidMessage(f"expected JSON as a string, not as {type(text).__name__}")
    text = text.lstrip(" \t\r\n")
    if not text:
        raise InvalidMessage("expected JSON, but the text is empty")
    try:
        return _DECODER.raw_decode(text)[0]
    except (RecursionError, ValueError) as error:
        raise _invalid_json(error) from error


def load_json(text: str) -> JsonValue:
    """Return the value of a text that contains one JSON value and nothing else.

    Raises InvalidMessage for any other text, and for a value deeper than `DEPTH_MAX` levels. A text
    with very many small values, such as a long `[{},{},{},…]`, is refused, too.
    """
    check_density(text)
    try:
        value = _BOUNDED_DECODER.decode(text)
    except InvalidMessage:
        raise
    except (RecursionError, ValueError) as error:
        raise _invalid_json(error) from error
    _check_depth(value)
    return value


def decoded(text: str) -> JsonValue:
    """Return the JSON value of a text, or the text itself if it is not JSON."""
    try:
        return load_json(text)
    except InvalidMessage:
        return text


def _invalid_json(error: RecursionError | ValueError) -> InvalidMessage:
    if isinstance(error, RecursionError):
        return InvalidMessage("the JSON is nested too deeply")
    return InvalidMessage(f"not valid JSON: {error}")


def check_density(text: str) -> None:
    """Raise InvalidMessage if a text has very many lists, objects, commas and properties for its
    length. Decoding such a text would take too much memory.
    """
    size = len(text)
    if size <= ELEMENTS_FREE:
        return
    elements = min(ELEMENTS_FREE + size // SIZE_PER_ELEMENT, ELEMENTS_MAX)
    for signs, most, what in (
        ("{[,", elements, "lists, objects and commas"),
        (":", max(PROPERTIES_FREE, size // SIZE_PER_PROPERTY), "properties"),
    ):
        found = _count(signs, text)
        # Strings may have any number of them.
        if found > most and found - _within_strings(signs, text) > most:
            raise InvalidMessage(
                f"the JSON has more than {most:,} {what} in {size:,} characters: send less at a "
                "time"
            )


def _within_strings(signs: str, text: str) -> int:
    return sum(_count(signs, text, *string.span()) for string in _STRING.finditer(text))


def _count(signs: str, text: str, start: int = 0, end: int | None = None) -> int:
    return sum(text.count(sign, start, end) for sign in signs)


def _check_depth(value: JsonValue, above: int = 0) -> None:
    """Raise InvalidMessage for a value that is too deep. Goes down level by level, because
    recursion could exhaust the stack.
    """
    level = [value]
    for _ in range(DEPTH_MAX + 1 - above):
        level = _containers(level)
        if not level:
            return
        level = _within(level)
    raise InvalidMessage(_TOO_DEEP)


def _containers(level: JsonList) -> JsonList:
    return [each for each in level if isinstance(each, dict | list)]


def _within(level: JsonList) -> JsonList:
    return [
        inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
    ]


class JsonObject(JsonDict):
    """A decoded JSON object. `twice` has the property names that occurred more than once."""

    __slots__ = ("twice",)
    twice: tuple[str, ...]


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = JsonObject(pairs)
    found.twice = ()
    if len(found) < len(pairs):
        names = Counter(name for name, _ in pairs)
        found.twice = tuple(name for name, count in names.items() if count > 1)
    return found


def _small_object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Return an object. Raises InvalidMessage for too many properties, because the decoder also
    holds them as pairs, and so twice.
    """
    if len(pairs) > PROPERTIES_OF_ONE:
        raise InvalidMessage(
            f"an object of the JSON can have at most {PROPERTIES_OF_ONE:,} properties, but has "
            f"{len(pairs):,}"
        )
    return _object(pairs)


def check_names(value: JsonValue, besides: Collection[str]) -> None:
    """Raise InvalidMessage if a JSON object, or an object inside it, has a property twice.

    Values of the properties in `besides`, and lists within lists, are not checked.
    """
    waiting = [value] if isinstance(value, JsonObject) else []
    while waiting:
        current = waiting.pop()
        if current.twice:
            raise InvalidMessage(f"the JSON has the property {current.twice[0]!r} twice")
        inner = [each for name, each in current.items() if name not in besides]
        waiting += [each for each in inner if isinstance(each, JsonObject)]
        lists = [each for each in inner if isinstance(each, list)]
        waiting += [each for some in lists for each in some if isinstance(each, JsonObject)]


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not valid JSON")


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > DIGITS_MAX:
        raise ValueError(f"a number has more than {DIGITS_MAX:,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


_decoder = partial(
    json.JSONDecoder,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=_integer,
)
_DECODER = _decoder(object_pairs_hook=_object)
_BOUNDED_DECODER = _decoder(object_pairs_hook=_small_object)
_PIECE_DECODER = _decoder(
    object_pairs_hook=lambda pairs: _small_object([(intern(name), each) for name, each in pairs])
)


@dataclass(frozen=True)
class JsonBounds:
    """The limits for the values of a JSON file.

    - `all`: the bytes of RAM that all values together may take.
    - `each`: the number of characters that a single text may have.
    - `remedy`: advice at the end of the error, which says what to do instead.
    """

    all: int
    each: int
    remedy: str


class JsonLine(NamedTuple):
    """A value in a JSON file, or a line that is not JSON. `number` is the line where the value
    begins, counted from 1.

    If the line is not JSON, `problem` says so, and `value` is None. Otherwise `problem` is "".
    """

    number: int
    value: JsonValue = None
    problem: str = ""


class _Malformed(InvalidMessage):
    """A value of a file is not readable JSON. Values on later lines may be readable."""


def json_lines(file: IO[str], bounds: JsonBounds | None = None) -> Iterator[JsonLine]:
    """Yield the values of a file that has one JSON value, or JSON Lines.

    A file is read as JSON Lines if its first or second line is a complete JSON object. Objects on
    the same line are separate values. A line that is not JSON is yielded with a `problem`.

    Raises InvalidMessage for a file that is neither JSON nor JSON Lines, and for a file that
    exceeds `bounds`. Raises InvalidMessage, too, for a value deeper than `DEPTH_MAX` levels, and
    for an object with more than PROPERTIES_OF_ONE properties.
    """
    return _JsonFile(file, bounds).lines()


class _JsonFile:
    """A JSON file that is read in pieces, with one piece in memory.

    A value that fits into a piece is decoded as a whole. Of a larger value, items and properties
    are decoded one by one. A larger text is continued in the next piece.
    """

    def __init__(self, file: IO[str], bounds: JsonBounds | None) -> None:
        self._file, self._bounds = file, bounds
        self._piece, self._at, self._is_last_piece = "", 0, False
        self._before, self._lines, self._line_start = 0, 0, 0  # lines of the file before the piece
        self._counted, self._newlines = 0, 0  # lines up to a place in the piece
        self._taken = 0
        self._is_behind_line = False  # whether a line ended within the current value
        self._are_lines = False  # whether an object began and ended on one line

    def lines(self) -> Iterator[JsonLine]:
        waiting: tuple[int, _Malformed] | None = None  # line 1, until line 2 is read
        end, may_follow = 0, True  # the last line of the last value, and whether it is an object
        while self._next() or not end:
            number, start = self._number(), self._before + self._at
            try:
                if number == end and not (may_follow and self._next() == "{"):
                    raise self._invalid("Extra data", self._at)
                value = self._value(0)
                end, may_follow = self._number(), isinstance(value, dict)
                rest = self._next() if self._is_next_on(end) else ""
                if rest and not isinstance(value, dict | list):
                    raise self._invalid("Extra data", self._at)
            except _Malformed as error:
                if waiting or (end and end != number and not self._are_lines):
                    raise waiting[1] if waiting else error from error
                end = self._leave_line(start)
                if self._are_lines:
                    yield JsonLine(number, problem=_not_json(error))
                else:
                    waiting = number, error
                continue
            is_line = may_follow and end == number and rest in ("", "{")
            if waiting and not is_line:
                raise waiting[1]
            if waiting:
                yield JsonLine(waiting[0], problem=_not_json(waiting[1]))
                waiting = None
            self._are_lines |= is_line
            yield JsonLine(number, value)
        if waiting:
            raise waiting[1]

    def _is_next_on(self, line: int) -> bool:
        """Return whether the next value begins on the line of this number."""
        return bool(self._next()) and self._number() == line

    def _number(self) -> int:
        """Return the number of the current line, from 1."""
        self._newlines += self._piece.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._lines + self._newlines + 1

    def _leave_line(self, start: int) -> int:
        """Go to the end of the line where a value began, and return the line's number. If that line
        is no longer in memory, go to the end of the current line.
        """
        if start >= self._before:
            self._at = start - self._before
            self._counted, self._newlines = 0, 0
        elif self._is_behind_line:
            return self._number() - 1
        while (end := self._piece.find("\n", self._at)) < 0:
            self._at = len(self._piece)
            if self._is_last_piece:
                return self._number()
            self._read_on()
        self._at = end
        return self._number()

    def _value(self, level: int) -> JsonValue:
        sign = self._next_within() if level else self._next()
        while True:
            try:
                value, end = _PIECE_DECODER.raw_decode(self._piece, self._at)
                if self._is_last_piece or end < len(self._piece) - LONGEST_SIGN:
                    self._at = end
                    _check_depth(value, level)
                    self._take(value)
                    return value
            except json.JSONDecodeError as error:
                if sign in ("[", "{") and len(self._piece) - self._at >= PIECE:
                    return self._container(sign, level)
                if self._is_last_piece or not self._is_cut(error):
                    raise self._invalid(error.msg, error.pos) from error
            except InvalidMessage:
                raise
            except (RecursionError, ValueError) as error:
                raise _Malformed(str(_invalid_json(error))) from error
            self._read_on()

    def _container(self, sign: str, level: int) -> JsonValue:
        if level >= DEPTH_MAX:
            raise InvalidMessage(_TOO_DEEP)
        return self._list(level) if sign == "[" else self._object(level)

    def _list(self, level: int) -> JsonList:
        return [self._value(level + 1) for _ in self._each("]")]

    def _object(self, level: int) -> JsonObject:
        pairs: list[tuple[str, JsonValue]] = []
        for _ in self._each("}"):
            if self._next_within() != '"':
                raise self._invalid("Expecting property name enclosed in double quotes", self._at)
            name = self._value(level + 1)
            if self._next_within() != ":":
                raise self._invalid("Expecting ':' delimiter", self._at)
            self._at += 1
            pairs.append((name, self._value(level + 1)))
        return _small_object(pairs)

    def _each(self, end: str) -> Iterator[None]:
        """Yield once for each item or property of a container, then move past the container's
        end.
        """
        self._at += 1
        sign = self._next_within()
        while sign != end:
            yield
            sign = self._next_within()
            if sign == ",":
                self._at += 1
            elif sign != end:
                raise self._invalid("Expecting ',' delimiter", self._at)
        self._at += 1

    def _next_within(self) -> str:
        """Return the next character within a container. In JSON Lines, a container must end on its
        line.
        """
        line = self._number()
        sign = self._next()
        self._is_behind_line = self._are_lines and self._number() > line
        if self._is_behind_line:
            raise self._invalid("the line ends", self._at)
        return sign

    def _next(self) -> str:
        """Return the next character that is not white space; "" at the end of the file."""
        while True:
            start = self._at
            self._at = _SPACE.match(self._piece, start).end()  # type: ignore[union-attr]  # it matches an empty text, too
            if self._at < len(self._piece):
                return self._piece[self._at]
            if self._is_last_piece:
                return ""
            self._read_on()

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether an error may be due to the end of the piece."""
        is_at_end = error.pos >= len(self._piece) - LONGEST_SIGN
        return is_at_end or error.msg.startswith("Unterminated string")

    def _read_on(self) -> None:
        rest = self._piece[self._at :]
        if self._bounds and len(rest) > self._bounds.each:
            most = f"{self._bounds.each:,} characters"
            raise InvalidMessage(f"a text in the JSON has more than {most}: {self._bounds.remedy}")
        self._lines, self._line_start = self._place(self._at)
        self._before += self._at
        more = self._file.read(max(PIECE, len(rest) // 4))
        self._piece, self._at, self._is_last_piece = rest + more, 0, not more
        self._counted, self._newlines = 0, 0

    def _take(self, value: JsonValue) -> None:
        """Count the memory that a value takes, and that of the messages made from the value."""
        level = [value] if self._bounds else []
        while level:
            self._taken += sum(map(getsizeof, level)) + OF_A_VALUE * len(level)
            level = _within(_containers(level))
        if self._bounds and self._taken > self._bounds.all:
            most = f"{self._bounds.all:,} bytes of memory"
            raise InvalidMessage(f"the JSON takes more than {most}: {self._bounds.remedy}")

    def _place(self, at: int) -> tuple[int, int]:
        """Return the number of line ends before a position in the piece, and the position where the
        next line begins.
        """
        lines = self._piece.count("\n", 0, at)
        start = self._before + self._piece.rfind("\n", 0, at) + 1
        return self._lines + lines, start if lines else self._line_start

    def _invalid(self, why: str, at: int) -> _Malformed:
        lines, start = self._place(at)
        place = self._before + at
        where = f"line {lines + 1} column {place - start + 1} (char {place})"
        return _Malformed(f"not valid JSON: {why}: {where}")


def _not_json(error: InvalidMessage) -> str:
    """Return a sentence that says a line is not JSON, with the reason if the line resembles
    JSON.
    """
    why = str(error).removeprefix("not valid JSON: ")
    return "not JSON" if " column " in why else f"not JSON: {why}"
