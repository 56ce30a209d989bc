"""Values as bytes that no other value has, of which digests are made.

A value is a letter for its type, its length and its content; a mapping is sorted by its names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import add, attrgetter, itemgetter
from typing import Any, NamedTuple

Bytes = bytes | memoryview  # what databases return

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Encoded(bytes):
    """A value that is encoded already."""


def encoded(value: Any) -> bytes:
    """Return bytes that no other value has: a letter for the type, the length and the content."""
    return _ENCODERS[type(value)](value)


def _encoded_text(value: str) -> bytes:
    content = value.encode()
    return b"s%d:%b" % (len(content), content)


def _encoded_bytes(value: Bytes | bytearray) -> bytes:
    return b"x%d:%b" % (len(value), bytes(value))


def _encoded_time(value: datetime) -> bytes:
    return b"t%d;" % ((value - _EPOCH) // _MICROSECOND)


def _encoded_mapping(value: Mapping[str, Any]) -> bytes:
    content = b"".join([_encoded_text(name) + encoded(value[name]) for name in sorted(value)])
    return b"m%d:%b" % (len(content), content)


def encoded_list(value: Iterable[Any]) -> bytes:
    """Return what `encoded` does of a list."""
    parts = [encoded(each) for each in value]
    return b"".join([b"l%d:" % sum(map(len, parts)), *parts])


def _encoded_json(value: Any) -> bytes:
    content = json.dumps(value).encode()
    return b"j%d:%b" % (len(content), content)


class _Encoders(dict[type, Callable[[Any], bytes]]):
    """What encodes the values of a type, which is looked for once."""

    def __missing__(self, type: type) -> Callable[[Any], bytes]:
        bases = (encode for base, encode in tuple(self.items()) if issubclass(type, base))
        # The numbers with a fraction of a policy's options have no type of their own
        self[type] = next(bases, _encoded_json)
        return self[type]


_ENCODERS = _Encoders(
    {
        type(None): lambda _: b"n",
        bool: lambda value: b"b1" if value else b"b0",
        int: lambda value: b"i%d;" % value,
        str: _encoded_text,
        Encoded: lambda value: value,
        bytes: _encoded_bytes,
        bytearray: _encoded_bytes,
        memoryview: _encoded_bytes,
        datetime: _encoded_time,
        Mapping: _encoded_mapping,
        dict: _encoded_mapping,
        list: encoded_list,
        tuple: encoded_list,
    }
)


class Columns:
    """The names of a row's columns and of other values, which are sorted and encoded once."""

    def __init__(self, columns: Sequence[str], *others: str) -> None:
        names = (*columns, *others)
        self._order = sorted(range(len(names)), key=names.__getitem__)
        self._names = [_encoded_text(names[n]) for n in self._order]
        self._columns_of = attrgetter(*columns)
        self._forms: dict[tuple[type, ...], _Form] = {}

    def encoded(self, row: Any, *others: Any) -> bytes:
        """Return the mapping of the names to the values of a row, and to the others."""
        return b"".join(self.parts(row, *others))

    def parts(self, row: Any, *others: Any) -> tuple[bytes, bytes]:
        """Return the same in two parts, as a step can have begun many stays."""
        values = (*self._columns_of(row), *others)
        types = tuple(map(type, values))
        form = self._forms.get(types) or self._forms.setdefault(types, self._form_of(types))
        filled = [*form.filling(values)]
        for n, encode in form.encoders:
            filled[n] = encode(filled[n])
        content = form.text % tuple(filled)
        return b"m%d:" % len(content), content

    def _form_of(self, types: Sequence[type]) -> _Form:
        blanks = [_BLANKS.get(types[n], b"%b") for n in self._order]
        text = b"".join(map(add, self._names, blanks))
        places = [n for n, blank in zip(self._order, blanks, strict=True) if b"%" in blank]
        encoders = [
            (i, _ENCODERS[types[n]]) for i, n in enumerate(places) if types[n] not in _BLANKS
        ]
        return _Form(text, itemgetter(*places), encoders)


class _Form(NamedTuple):
    """The encoding of all rows whose columns have the same types, with a blank for each value: the
    values that fill it, and what encodes those of them that are no numbers.
    """

    text: bytes
    filling: Callable[[Sequence[Any]], Sequence[Any]]
    encoders: Sequence[tuple[int, Callable[[Any], bytes]]]


_BLANKS = {type(None): b"n", bool: b"b%d", int: b"i%d;"}
