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
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from chatmemory.models import Memory, Message, Stay, Step

Bytes = bytes | memoryview  # what databases return

VERSION = 1
SALT_BYTES = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MESSAGE = ("seq", "type", "text", "payload", "tokens", "origin", "said_at", "client_id")
_STAY = ("n", "seq", "rank", "type", "has_calls", "pinned", "tokens")
_STEP = (
    *("n", "kind", "at", "actor", "by_client", "count_before", "tokens_before", "count_after"),
    *("tokens_after", "history_tokens", "last_seq", "said_count", "last_stay", "oldest", "seq"),
    *("note", "policy_kind", "policy_limit", "policy_estimator", "policy_options", "commitment"),
)


def new_salt() -> bytes:
    return secrets.token_bytes(SALT_BYTES)


def commitment_of(message: Message) -> bytes:
    """Return the digest of a message's columns and its salt, which a redacted one has not."""
    return _digest("message", {"salt": message.salt} | _columns(message, _MESSAGE))


def commitment_of_labels(labels: Mapping[str, str], salt: Bytes | None) -> bytes:
    return _digest("labels", {"salt": salt, "labels": dict(labels)})


def first_digest(memory: Memory) -> bytes:
    """Return the digest before step 1. It continues the chain of a deleted one with the same id."""
    return _digest(
        "conversation",
        {
            "id": memory.pk,
            "created_at": memory.created_at,
            "labels": memory.first_labels,
            "previous": memory.previous_head,
        },
    )


def anchor_of(memory: Memory, older: Bytes, newest: Bytes) -> bytes:
    """Return the head of an anchored conversation, given the digest of the last step that is older
    than the chain, and the digest of the newest step when it was anchored.
    """
    names = ("anchored_at", "anchored_step", "older_steps")
    return _digest("anchor", {"older": older, "newest": newest} | _columns(memory, names))


def begin(memory: Memory, previous_head: bytes | None) -> None:
    """Begin the chain of a new conversation, which is not yet saved."""
    memory.labels_salt = new_salt()
    memory.first_labels = commitment_of_labels(memory.labels, memory.labels_salt)
    memory.previous_head = previous_head
    memory.head = first_digest(memory)


def digest_of(
    previous: Bytes | None,
    step: Step,
    commitments: Iterable[Bytes | None],
    begun: Iterable[bytes],
    ended: Iterable[tuple[int, str]],
) -> bytes:
    """Return the digest of a step.

    `commitments` are those of its messages by seq, `begun` the stays that it began (see
    `encoded_stay`), `ended` the number and the reason of those that it ended. Stays are in the
    order of their numbers.
    """
    return _digest(
        "step",
        {
            "previous": previous,
            "messages": list(commitments),
            "begun": _Encoded(_list_of(begun)),
            "ended": list(ended),
        }
        | _columns(step, _STEP),
    )


def encoded_stay(stay: Stay) -> bytes:
    """Return the columns of a stay that are known when it begins."""
    return _encoded(_columns(stay, _STAY))


def _columns(row: Memory | Message | Stay | Step, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _digest(kind: str, fields: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(f"chatmemory {VERSION} {kind} ".encode() + _encoded(fields)).digest()


class _Encoded(bytes):
    """A value that is encoded already."""


def _encoded(value: Any) -> bytes:
    """Return bytes that no other value has: a letter for the type, the length and the content."""
    encode = _BY_TYPE.get(type(value))
    if encode is None:
        bases = (encode for base, encode in _BY_TYPE.items() if isinstance(value, base))
        # The numbers with a fraction of a policy's options have no type of their own
        encode = next(bases, _encoded_json)
    return encode(value)


def _encoded_text(value: str) -> bytes:
    content = value.encode()
    return b"s%d:%b" % (len(content), content)


def _encoded_bytes(value: Bytes | bytearray) -> bytes:
    return b"x%d:%b" % (len(value), bytes(value))


def _encoded_time(value: datetime) -> bytes:
    return b"t%d;" % ((value - _EPOCH) // _MICROSECOND)


def _encoded_mapping(value: Mapping[str, Any]) -> bytes:
    content = b"".join([_encoded_name(name) + _encoded(value[name]) for name in sorted(value)])
    return b"m%d:%b" % (len(content), content)


def _encoded_list(value: Iterable[Any]) -> bytes:
    return _list_of(map(_encoded, value))


def _list_of(encoded: Iterable[bytes]) -> bytes:
    content = b"".join(encoded)
    return b"l%d:%b" % (len(content), content)


def _encoded_json(value: Any) -> bytes:
    content = json.dumps(value).encode()
    return b"j%d:%b" % (len(content), content)


_encoded_name = lru_cache(maxsize=256)(_encoded_text)  # names of columns come again and again
_BY_TYPE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"n",
    bool: lambda value: b"b1" if value else b"b0",
    int: lambda value: b"i%d;" % value,
    str: _encoded_text,
    _Encoded: bytes,
    bytes: _encoded_bytes,
    bytearray: _encoded_bytes,
    memoryview: _encoded_bytes,
    datetime: _encoded_time,
    Mapping: _encoded_mapping,
    dict: _encoded_mapping,
    list: _encoded_list,
    tuple: _encoded_list,
}
