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
import os
from collections.abc import Mapping, Sequence

from chatmemory.core.codec import payload_of
from chatmemory.ledger.encoding import Bytes, Columns, Encoded, encoded
from chatmemory.ledger.sql import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.models import Memory, Message, Stay, Step

VERSION = 1
SALT_BYTES = 16


def stored(value: Bytes | None) -> bytes:
    """Return the content of a column of bytes; of a number, `bytes` would make as many zeros."""
    return b"" if value is None else bytes(memoryview(value))


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def commitment_of(message: Message | InsertedMessage) -> bytes:
    """Return the digest of a message's columns and its salt, which a redacted one has not."""
    return _digest("message", *_MESSAGE.parts(message, payload_of(message.frame, message.text)))


def commitment_of_labels(labels: Mapping[str, str], salt: Bytes | None) -> bytes:
    return _digest("labels", encoded({"salt": salt, "labels": dict(labels)}))


def first_digest(memory: Memory) -> bytes:
    """Return the digest before step 1. It continues the chain of a deleted one with the same id."""
    content = {
        "id": memory.pk,
        "created_at": memory.created_at,
        "labels": memory.first_labels,
        "previous": memory.previous_head,
    }
    return _digest("conversation", encoded(content))


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


def digest_of(
    previous: Bytes | None,
    step: Step | InsertedStep,
    commitments: Sequence[Bytes | None],
    begun: Sequence[Encoded],
    ended: Sequence[tuple[int, str]],
) -> bytes:
    """Return the digest of a step.

    `commitments` are those of its messages by seq, `begun` the stays that it began (see
    `encoded_stay`), `ended` the number and the reason of those that it ended. Stays are in the
    order of their numbers.
    """
    return _digest("step", *_STEP.parts(step, previous, commitments, begun, ended))


def encoded_stay(stay: Stay | InsertedStay) -> Encoded:
    """Return the columns of a stay that are known when it begins."""
    return Encoded(_STAY.encoded(stay))


def _digest(kind: str, *content: bytes) -> bytes:
    digest = hashlib.sha256(_BEGINNINGS[kind])
    for part in content:
        digest.update(part)
    return digest.digest()


_BEGINNINGS = {
    kind: f"chatmemory {VERSION} {kind} ".encode()
    for kind in ("message", "labels", "conversation", "anchor", "step")
}


_MESSAGE = Columns(
    ("seq", "type", "text", "tokens", "origin", "said_at", "client_id", "salt"), "payload"
)
_STAY = Columns(("n", "seq", "rank", "type", "has_calls", "pinned", "tokens"))
_STEP = Columns(
    (
        *("n", "kind", "at", "actor", "by_client", "count_before", "tokens_before", "count_after"),
        *("tokens_after", "history_tokens", "last_seq", "said_count", "last_stay", "oldest", "seq"),
        *("note", "policy_kind", "policy_limit", "policy_estimator", "policy_options"),
        "commitment",
    ),
    *("previous", "messages", "begun", "ended"),
)
_ANCHOR = Columns(("anchored_at", "anchored_step", "older_steps"), "older", "newest")
