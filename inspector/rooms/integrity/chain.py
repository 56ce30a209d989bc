"""The chain of digests, which shows alterations that a replay cannot.

Each step has a digest over the digest before it and over everything that the step wrote: its own
columns, the commitments of its messages, and the stays that it began and ended. The newest digest,
the head, is in the conversation's row. Somebody who kept a head can prove later that nothing up to
its step was altered or cut off. Without a kept head, an attacker who can write to the database can
also compute the whole chain again.

A commitment is a digest over columns and a random salt. It is kept when the text and the salt are
erased, and then lets nobody guess the text.

A digest is the SHA-256 of a JSON list: the version, the kind of row, and values in a fixed order.
The JSON is ASCII without spaces, objects are sorted by their names, times are microseconds since
1970 and bytes are hexadecimal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import Any

from chatmemory import CorruptRow
from chatmemory.ledger.lookup import Bytes, stored
from chatmemory.ledger.overrides import digest_of_overrides
from chatmemory.ledger.rows import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.room import Recorded

VERSION = 3
VERSION_OF_STEPS = 4  # from this version on, steps include their loads
SALT_BYTES = 16

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_message_columns = attrgetter(
    *("seq", "type", "text", "frame", "attributes", "tokens", "origin", "said_at", "client_id"),
    "salt",
)
_step_columns = attrgetter(
    *("n", "kind", "at", "actor", "by_client", "count_before", "tokens_before", "count_after"),
    *("tokens_after", "history_tokens", "last_seq", "said_count", "last_stay", "oldest", "seq"),
    *("note", "policy_kind", "policy_limit", "policy_estimator", "policy_options", "commitment"),
)
_stay_columns = attrgetter("n", "seq", "rank", "type", "has_calls", "pinned", "tokens", "size")


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def seal(change: Recorded) -> None:
    """Fill in the digests of a step and its messages, or of a conversation without steps."""
    memory = change.memory
    if not change.steps:
        memory.labels_salt = new_salt()
        memory.first_labels = commitment_of_labels(memory.labels, memory.labels_salt)
        memory.head = first_digest(memory)
        return
    (step,) = change.steps
    for row in change.messages:
        row.salt = new_salt()
        row.commitment = commitment_of(row)
    if step.kind == Step.Kind.LABELS:
        memory.labels_salt = new_salt()
        step.commitment = commitment_of_labels(memory.labels, memory.labels_salt)
    elif change.redacted is not None:
        step.commitment = commitment_of(change.redacted)
    memory.head = step.digest = digest_of(
        memory.head or first_digest(memory),
        step,
        [row.commitment for row in change.messages],
        [encoded_stay(row) for row in change.stays],
        change.ended,
    )


def check_commitments(memory_id: str, seqs: Sequence[int]) -> None:
    """Raise CorruptRow if a message differs from its commitment."""
    for row in Message.objects.filter(memory=memory_id, seq__in=seqs, redacted_step=None):
        commitment = stored(row.commitment)
        if commitment and commitment_of(row) != commitment:
            raise CorruptRow(f"message #{row.seq} of {memory_id!r} is not what was said")


def first_digest(memory: Memory) -> bytes:
    """Return the digest before step 1. It continues the chain of a deleted conversation with the
    same id.
    """
    before = memory.first_labels, memory.previous_head
    return _digest("conversation", memory.pk, memory.created_at, *before)


def commitment_of(message: Message | InsertedMessage) -> bytes:
    """Return the digest of a message's columns and its salt. A redacted message has no salt."""
    return _digest("message", *_message_columns(message))


def commitment_of_labels(labels: Mapping[str, str], salt: Bytes) -> bytes:
    return _digest("labels", labels, salt)


def encoded_stay(stay: Stay | InsertedStay) -> tuple[Any, ...]:
    """Return the columns of a stay that are known when it begins, and the digest of overrides."""
    if stay.overrides is None:
        return _stay_columns(stay)
    return (*_stay_columns(stay), digest_of_overrides(stay.overrides))


def digest_of(
    previous: Bytes,
    step: Step | InsertedStep,
    commitments: Sequence[Bytes],
    begun: Sequence[tuple[Any, ...]],
    ended: Sequence[tuple[int, str]],
) -> bytes:
    """Return the digest of a step.

    `commitments` are its messages' commitments by seq, `begun` the stays that it began (see
    `encoded_stay`), `ended` the number and the reason of the stays that it ended. Stays are in the
    order of their numbers.
    """
    return _digest_of_step(VERSION_OF_STEPS, previous, step, commitments, begun, ended, step.load)


def earlier_digest_of(
    previous: Bytes,
    step: Step,
    commitments: Sequence[Bytes],
    begun: Sequence[tuple[Any, ...]],
    ended: Sequence[tuple[int, str]],
) -> bytes:
    """Return the digest of a step as earlier versions made it: without its load."""
    return _digest_of_step(VERSION, previous, step, commitments, begun, ended)


def _digest_of_step(version: int, previous: Bytes, step: Step | InsertedStep, *wrote: Any) -> bytes:
    return _digest("step", previous, *_step_columns(step), *wrote, version=version)


def _digest(of: str, *values: Any, version: int = VERSION) -> bytes:
    return sha256(_as_json([version, of, *values]).encode("ascii")).digest()


def _plain(value: datetime | Bytes) -> int | str:
    """Return the JSON value of a time or of bytes."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return value.hex()


_as_json = json.JSONEncoder(
    default=_plain, separators=(",", ":"), sort_keys=True, check_circular=False
).encode
