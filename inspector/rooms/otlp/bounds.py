"""Counts the parts of a protobuf request of OTLP (OpenTelemetry's protocol) before the request is
parsed.

A body of one megabyte can have half a million empty spans, and parsing them would take long.
Counting reads only tags and lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from chatmemory.messages.json_values import LibraryValue

# Of one body. An SDK sends 512 spans at once by default.
MOST: Mapping[str, int] = {
    "spans": 10_000,
    "events": 20_000,
    "attributes": 100_000,
    "groups": 50_000,
    "fields": 600_000,
    "levels": 100,
}
_COUNTED = {
    "Span": "spans",
    "LogRecord": "spans",
    "Event": "events",
    "Link": "events",
    "KeyValue": "attributes",
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


class NoProtobuf(ValueError):
    """Raised if bytes are not a protobuf message."""


class TooMuch(ValueError):
    """Raised if a body has more spans, attributes or nested levels than allowed."""

    def __init__(self, what: str, count: int, size: int) -> None:
        most = MOST[what]
        super().__init__(
            f"the body has at least {count:,} {what} in {size:,} bytes, and at most {most:,} are "
            "read: send less in one request"
        )


class _Plan(NamedTuple):
    """The fields of a protobuf message that hold messages, by field number: what such a message
    counts as, and its own plan.
    """

    inner: dict[int, tuple[str, _Plan]]


@cache
def _plan_of(descriptor: LibraryValue) -> _Plan:
    """Return the plan of a protobuf message type. A type can contain itself."""
    plans = {descriptor.full_name: _Plan({})}
    waiting = [descriptor]
    while waiting:
        each = waiting.pop()
        for field in each.fields:
            inner = field.message_type
            if inner is None:
                continue
            if inner.full_name not in plans:
                plans[inner.full_name] = _Plan({})
                waiting.append(inner)
            plan = plans[inner.full_name]
            plans[each.full_name].inner[field.number] = _counted(each.name, inner.name), plan
    return plans[descriptor.full_name]


def _counted(within: str, name: str) -> str:
    """Return what a protobuf message of the type `name` counts as within the type `within`, such as
    "attributes".
    """
    if name == "AnyValue":
        return "attributes" if within == "ArrayValue" else "fields"
    return _COUNTED.get(name, "groups")


class _Counter:
    """Counts the parts of a body, and raises TooMuch when there are too many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts = dict.fromkeys(MOST, 0)

    def add(self, what: str, count: int = 1) -> None:
        self._counts[what] += count
        self.check(what, self._counts[what])

    def check(self, what: str, count: int) -> None:
        if count > MOST[what]:
            raise TooMuch(what, count, self._size)


def check(body: bytes, descriptor: LibraryValue) -> None:
    """Raise TooMuch if a body has more parts of a kind than `MOST` allows. Raise NoProtobuf if the
    body is not protobuf.

    `descriptor` describes the message type of the body. The kinds of parts are:

    - `spans`: spans and log records.
    - `events`: events and links.
    - `attributes`: attributes, and items of lists.
    - `groups`: other protobuf messages, such as resources.
    - `fields`: the fields of all protobuf messages. The value of an attribute and the body of a log
      record count twice.
    - `levels`: nested levels of protobuf messages.
    """
    counter = _Counter(len(body))
    waiting = [(0, len(body), _plan_of(descriptor), 1)]
    while waiting:
        start, end, plan, level = waiting.pop()
        counter.check("levels", level)
        fields = 0
        for number, place, size in _fields(body, start, end):
            fields += 1
            if number in plan.inner:
                what, inner = plan.inner[number]
                counter.add(what)
                if size:
                    waiting.append((place, place + size, inner, level + 1))
            elif not fields % 1_000:
                counter.check("fields", fields)
        counter.add("fields", fields)


def _fields(body: bytes, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, position and size of each field of a message. The number is 0 for fields
    without a length.
    """
    while place < end:
        tag, place = _varint(body, place, end)
        kind, number, size = tag & 7, 0, 0
        if kind == _BYTES:
            number = tag >> 3
            size, place = _varint(body, place, end)
        elif kind == _VARINT:
            _, place = _varint(body, place, end)
        else:
            place += _fixed(kind)
        if place + size > end:
            raise NoProtobuf("the length of a field goes beyond the end of its message")
        yield number, place, size
        place += size


def _varint(body: bytes, place: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = shift = 0
    while place < end and shift < 70:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise NoProtobuf("a number is cut off or too long")


def _fixed(kind: int) -> int:
    if kind not in _SIZES:
        raise NoProtobuf(f"OTLP has no fields of the wire type {kind}")
    return _SIZES[kind]
