"""The chain of digests, which shows alterations that a replay cannot.

Each step has a digest over the digest before it and over everything that the step wrote: its own
columns, the commitments of its messages, and the stays that it began and ended. The newest digest,
the head, is in the conversation's row. Whoever kept a head can tell later that nothing up to its
step was altered or cut off; without a kept head, an attacker who can write to the database can
also compute the chain anew.

A commitment is a digest over columns and a random salt. It stays when the words and the salt are
erased, and does not let anybody guess the words.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain as chain_of
from operator import add, attrgetter, itemgetter
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from weakref import finalize

from chatmemory.core.codec import LONG, encoded_parts
from chatmemory.ledger.long_texts import LongText
from chatmemory.models import Memory, Message, Stay, Step

Bytes = bytes | memoryview  # what databases return

VERSION = 1
SALT_BYTES = 16
FEW = 100  # values whose encodings are short together
TOGETHER = 2**18  # bytes; longer ones are not put together, which takes their memory twice
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def stored(value: Bytes | None) -> bytes:
    """Return the content of a column of bytes; of a number, `bytes` would make as many zeros."""
    return b"" if value is None else bytes(memoryview(value))


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def commitment_of(message: Message) -> bytes:
    """Return the digest of a message's columns and its salt, which a redacted one has not."""
    if len(message.text) + len(message.payload) <= LONG:
        return _digest("message", _MESSAGE.encoded(message))
    return _digest_of_parts("message", partial(_MESSAGE.parts, message))


def commitment_of_labels(labels: Mapping[str, str], salt: Bytes | None) -> bytes:
    return _digest("labels", _encoded({"salt": salt, "labels": dict(labels)}))


def first_digest(memory: Memory) -> bytes:
    """Return the digest before step 1. It continues the chain of a deleted one with the same id."""
    content = {
        "id": memory.pk,
        "created_at": memory.created_at,
        "labels": memory.first_labels,
        "previous": memory.previous_head,
    }
    return _digest("conversation", _encoded(content))


def anchor_of(memory: Memory, older: Bytes, newest: Bytes) -> bytes:
    """Return the head of an anchored conversation, given the digest of the last step that is older
    than the chain, and the digest of the newest step when it was anchored.
    """
    return _digest("anchor", _ANCHOR.encoded(memory, older, newest))


def begin(memory: Memory, previous_head: bytes | None) -> None:
    """Begin the chain of a new conversation, which is not yet saved."""
    memory.labels_salt = new_salt()
    memory.first_labels = commitment_of_labels(memory.labels, memory.labels_salt)
    memory.previous_head = previous_head
    memory.head = first_digest(memory)


class Encoded(bytes):
    """A value that is encoded already."""


class EncodedList:
    """A list of which only the encoding is kept."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._content = bytearray()
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        self._content += _encoded(value)

    def __len__(self) -> int:
        """The number of bytes."""
        return len(self._content)

    def parts(self) -> Iterator[bytes | bytearray]:
        """Yield the encoding of the list."""
        yield b"l%d:" % len(self)
        yield self._content


class FiledList(EncodedList):
    """A list of which a long part is in a temporary file, as a step can begin very many stays.

    Where there is no place for such a file, it is kept in memory.
    """

    _file: IO[bytes] | None = None
    _in_file = 0

    def add(self, value: Any) -> None:
        super().add(value)
        if len(self._content) > TOGETHER:
            with suppress(FileNotFoundError):
                self._put_aside()

    def __len__(self) -> int:
        return self._in_file + len(self._content)

    def parts(self) -> Iterator[bytes | bytearray]:
        yield b"l%d:" % len(self)
        if self._file:
            self._file.seek(0)
            while part := self._file.read(TOGETHER):
                yield part
        yield self._content

    def _put_aside(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115  # closed with the list
            finalize(self, self._file.close)
        self._in_file += self._file.write(self._content)
        self._content = bytearray()


def digest_of(
    previous: Bytes | None,
    step: Step,
    commitments: EncodedList | Iterable[Bytes | None],
    begun: EncodedList | Iterable[Encoded],
    ended: EncodedList | Iterable[tuple[int, str]],
) -> bytes:
    """Return the digest of a step.

    `commitments` are those of its messages by seq, `begun` the stays that it began (see
    `encoded_stay`), `ended` the number and the reason of those that it ended. Stays are in the
    order of their numbers.
    """
    lists = [_list_of(each) for each in (commitments, begun, ended)]
    if sum(map(len, lists)) <= TOGETHER:
        return _digest("step", _STEP.encoded(step, previous, *lists))
    return _digest_of_parts("step", partial(_STEP.parts, step, previous, *lists))


def _list_of(values: EncodedList | Iterable[Any]) -> EncodedList | Encoded:
    if isinstance(values, list) and len(values) <= FEW:
        return Encoded(_encoded_list(values))
    return values if isinstance(values, EncodedList) else EncodedList(values)


def encoded_stay(stay: Stay) -> Encoded:
    """Return the columns of a stay that are known when it begins."""
    return Encoded(_STAY.encoded(stay))


def _digest(kind: str, encoded: bytes) -> bytes:
    return hashlib.sha256(_BEGINNINGS[kind] + encoded).digest()


def _digest_of_parts(kind: str, parts: Callable[[], Iterator[bytes | bytearray]]) -> bytes:
    """Return the digest of a mapping of which each part is in memory alone."""
    digest = hashlib.sha256(_BEGINNINGS[kind] + b"m%d:" % sum(map(len, parts())))
    for part in parts():
        digest.update(part)
    return digest.digest()


_BEGINNINGS = {
    kind: f"chatmemory {VERSION} {kind} ".encode()
    for kind in ("message", "labels", "conversation", "anchor", "step")
}


def _encoded(value: Any) -> bytes:
    """Return bytes that no other value has: a letter for the type, the length and the content."""
    return _ENCODERS[type(value)](value)


def _parts_of(value: Any) -> Iterable[bytes | bytearray]:
    """Return what `_encoded` does; of a long list or text, each part alone."""
    if isinstance(value, EncodedList):
        return value.parts()
    if isinstance(value, LongText):
        return b"s%d:" % len(value), value
    if isinstance(value, str) and len(value) > LONG:
        return chain_of([b"s%d:" % sum(map(len, encoded_parts(value)))], encoded_parts(value))
    return [_encoded(value)]


def _encoded_in_parts(value: LongText | EncodedList) -> bytes:
    return b"".join(_parts_of(value))


def _encoded_text(value: str) -> bytes:
    content = value.encode()
    return b"s%d:%b" % (len(content), content)


def _encoded_bytes(value: Bytes | bytearray) -> bytes:
    return b"x%d:%b" % (len(value), bytes(value))


def _encoded_time(value: datetime) -> bytes:
    return b"t%d;" % ((value - _EPOCH) // _MICROSECOND)


def _encoded_mapping(value: Mapping[str, Any]) -> bytes:
    content = b"".join([_encoded_text(name) + _encoded(value[name]) for name in sorted(value)])
    return b"m%d:%b" % (len(content), content)


def _encoded_list(value: Iterable[Any]) -> bytes:
    content = b"".join(map(_encoded, value))
    return b"l%d:%b" % (len(content), content)


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
        Encoded: bytes,
        LongText: _encoded_in_parts,
        EncodedList: _encoded_in_parts,
        bytes: _encoded_bytes,
        bytearray: _encoded_bytes,
        memoryview: _encoded_bytes,
        datetime: _encoded_time,
        Mapping: _encoded_mapping,
        dict: _encoded_mapping,
        list: _encoded_list,
        tuple: _encoded_list,
    }
)


class _Columns:
    """The names of a row's columns and of other values, which are sorted and encoded once."""

    def __init__(self, columns: Sequence[str], *others: str) -> None:
        names = (*columns, *others)
        self._order = sorted(range(len(names)), key=names.__getitem__)
        self._names = [_encoded_text(names[n]) for n in self._order]
        self._columns_of = attrgetter(*columns)
        self._forms: dict[tuple[type, ...], _Form] = {}

    def encoded(self, row: Memory | Message | Stay | Step, *others: Any) -> bytes:
        """Return the mapping of the names to the values of a row, and to the others."""
        values = (*self._columns_of(row), *others)
        types = tuple(map(type, values))
        form = self._forms.get(types) or self._forms.setdefault(types, self._form_of(types))
        filled = [*form.filling(values)]
        for n, encode in form.encoders:
            filled[n] = encode(filled[n])
        content = form.text % tuple(filled)
        return b"m%d:%b" % (len(content), content)

    def parts(
        self, row: Memory | Message | Stay | Step, *others: Any
    ) -> Iterator[bytes | bytearray]:
        """Yield what the mapping consists of; of long lists, each part alone."""
        values = (*self._columns_of(row), *others)
        for name, n in zip(self._names, self._order, strict=True):
            yield name
            yield from _parts_of(values[n])

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


_MESSAGE = _Columns(
    ("seq", "type", "text", "payload", "tokens", "origin", "said_at", "client_id", "salt")
)
_STAY = _Columns(("n", "seq", "rank", "type", "has_calls", "pinned", "tokens"))
_STEP = _Columns(
    (
        *("n", "kind", "at", "actor", "by_client", "count_before", "tokens_before", "count_after"),
        *("tokens_after", "history_tokens", "last_seq", "said_count", "last_stay", "oldest", "seq"),
        *("note", "policy_kind", "policy_limit", "policy_estimator", "policy_options"),
        "commitment",
    ),
    *("previous", "messages", "begun", "ended"),
)
_ANCHOR = _Columns(("anchored_at", "anchored_step", "older_steps"), "older", "newest")
