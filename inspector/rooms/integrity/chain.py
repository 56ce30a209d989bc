"""The chain of digests, which reveals when stored rows were altered.

Each step has a digest over the previous digest and all that the step wrote: its own columns, the
commitments of its messages, and the stays that it began and ended. The newest digest is the head.
The row of the conversation has the head.

Somebody who kept a head elsewhere can prove later that no earlier step was altered or removed.
Without a kept head, there is no proof: an attacker who can write to the database can compute the
whole chain again.

A commitment is a digest over a message's columns and a random salt. A redaction erases the text and
the salt, but not the commitment. Without the salt, nobody can check guesses of the text against the
commitment.

A digest is the SHA-256 of a JSON list: the version, the kind of row, and values in a fixed order.
The JSON is ASCII without spaces, and the members of objects are sorted. Times are microseconds
since 1970, and bytes are hexadecimal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter, itemgetter

from django.db.models import Model

from chatmemory import CorruptRow
from chatmemory.columns import columns_of
from chatmemory.inserted import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.ledger.lookup import Bytes, stored
from chatmemory.ledger.overrides import digest_of_overrides
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.room import Recorded

FIRST_VERSION = 3
SALT_BYTES = 16

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Sealed:
    """The columns of a table that a digest covers, in order. A newer version of digests covers the
    columns of the older versions, and possibly more.

    `first` are the columns that the first version covers. `later` has pairs: a version, and a
    column that this version is the first to cover. The pairs are sorted by version.
    """

    def __init__(self, model: type[Model], *first: str) -> None:
        columns = [(name, each) for name, each in columns_of(model).items() if each.sealed_since]
        self.model, self.first = model, first
        self.first_values = attrgetter(*first)
        self.later = [(column.sealed_since, name) for name, column in columns]
        self.later.sort(key=itemgetter(0))
        self.versions = sorted({FIRST_VERSION, *(since for since, _ in self.later)}, reverse=True)
        self._filled_in = {name for name, column in columns if column.is_filled_in}

    def values(self, row: object, version: int) -> tuple[object, ...]:
        """Return the values of the columns that a digest of the given `version` covers: the columns
        of the first version, then the later columns.
        """
        first: tuple[object, ...] = self.first_values(row)
        return (*first, *self.later_values(row, version)) if self.later else first

    def later_values(self, row: object, version: int) -> list[object]:
        """Return the values of the columns that a `version` covers, without the columns of the
        first version.
        """
        return [getattr(row, name) for since, name in self.later if since <= version]

    def can_be_of(self, version: int, row: object) -> bool:
        """Return whether a row may have a digest of the given version.

        The columns that this version does not cover must be empty, or must have been filled in by a
        migration.
        """
        return all(
            since <= version or name in self._filled_in or getattr(row, name) is None
            for since, name in self.later
        )


MESSAGES = Sealed(
    Message,
    *("seq", "type", "text", "frame", "attributes", "tokens", "origin", "said_at", "client_id"),
    "salt",
)
STEPS = Sealed(
    Step,
    *("n", "kind", "at", "actor", "by_client", "count_before", "tokens_before", "count_after"),
    *("tokens_after", "history_tokens", "last_seq", "said_count", "last_stay", "oldest", "seq"),
    *("note", "policy_kind", "policy_limit", "policy_estimator", "policy_options", "commitment"),
)
STAYS = Sealed(Stay, "n", "seq", "rank", "type", "has_calls", "pinned", "tokens", "size")
# The newest version comes first. The digest of a step also covers the stays of the step.
VERSIONS_OF_STEPS = sorted({*STEPS.versions, *STAYS.versions}, reverse=True)


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def seal(change: Recorded) -> None:
    """Set the digests of a new step and of its messages, before they are stored. The digest of the
    step becomes the head of the conversation.

    A change without a step creates a conversation. Then the head is the digest before step 1; see
    `first_digest`.
    """
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
        change.stays,
        change.ended,
    )


def check_commitments(memory_id: str, seqs: Sequence[int]) -> None:
    """Raise CorruptRow if one of the given messages does not fit its commitment, because the
    message was altered. Redacted messages and messages without a commitment are not checked.
    """
    for row in Message.objects.filter(memory=memory_id, seq__in=seqs, redacted_step=None):
        commitment = stored(row.commitment)
        if commitment and not is_commitment(commitment, row):
            raise CorruptRow(
                f"message #{row.seq} of the conversation {memory_id!r} differs from its digest: "
                "the stored message was altered"
            )


def first_digest(memory: Memory) -> bytes:
    """Return the digest with which the chain of a conversation begins, before step 1. If a deleted
    conversation had the same ID, the digest includes the head of that conversation.
    """
    before = memory.first_labels, memory.previous_head
    return _digest("conversation", memory.pk, memory.created_at, *before)


def commitment_of(message: Message | InsertedMessage, version: int = MESSAGES.versions[0]) -> bytes:
    """Return the commitment of a message: a digest over the message's columns, including the salt.
    `version` is the version of the digest, which decides the columns.
    """
    return _digest("message", *MESSAGES.values(message, version), version=version)


def is_commitment(commitment: Bytes, message: Message | InsertedMessage) -> bool:
    """Return whether a commitment fits the present columns of a message. All versions of digests
    that the message can have are tried.
    """
    return any(
        commitment == commitment_of(message, version)
        for version in MESSAGES.versions
        if MESSAGES.can_be_of(version, message)
    )


def commitment_of_labels(labels: Mapping[str, str], salt: Bytes) -> bytes:
    return _digest("labels", labels, salt)


def encoded_stay(
    stay: Stay | InsertedStay, version: int = VERSIONS_OF_STEPS[0]
) -> tuple[object, ...]:
    """Return the values of a stay that a digest of the given `version` covers: the columns that are
    known when the stay begins.

    If memory shows other contents than the stored message, such as a placeholder, a last value is
    added. This is the digest of the contents that memory shows (`stay.overrides`).
    """
    columns = STAYS.values(stay, version)
    if stay.overrides is None:
        return columns
    return (*columns, digest_of_overrides(stay.overrides))


def digest_of(
    previous: Bytes,
    step: Step | InsertedStep,
    commitments: Sequence[Bytes],
    begun: Sequence[Stay | InsertedStay],
    ended: Sequence[tuple[int, str]],
    version: int = VERSIONS_OF_STEPS[0],
) -> bytes:
    """Return the digest of a step.

    `commitments` has the commitments of the messages that the step wrote, sorted by seq. `begun`
    has the stays that the step began. `ended` has a pair for each stay that the step ended: the
    number of the stay, and the reason why it ended. Stays are sorted by number.
    """
    return _digest(
        "step",
        previous,
        *STEPS.first_values(step),
        commitments,
        [encoded_stay(stay, version) for stay in begun],
        ended,
        *STEPS.later_values(step, version),
        version=version,
    )


def digest_as_sealed(
    digest: Bytes,
    previous: Bytes,
    step: Step | InsertedStep,
    commitments: Sequence[Bytes],
    begun: Sequence[Stay | InsertedStay],
    ended: Sequence[tuple[int, str]],
) -> bytes:
    """Return the stored `digest` of a step if it fits the step and all rows that the step wrote.
    All versions of digests that the step can have are tried.

    Otherwise, return another value. This proves that the step, or a row that the step wrote, was
    altered.
    """
    found = b""
    for version in VERSIONS_OF_STEPS:
        if STEPS.can_be_of(version, step) and all(STAYS.can_be_of(version, stay) for stay in begun):
            found = digest_of(previous, step, commitments, begun, ended, version)
        if found == digest:
            break
    return found


def _digest(of: str, *values: object, version: int = FIRST_VERSION) -> bytes:
    return sha256(_as_json([version, of, *values]).encode("ascii")).digest()


def _plain(value: datetime | Bytes) -> int | str:
    """Return the JSON value of a time or of bytes."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return value.hex()


_as_json = json.JSONEncoder(
    default=_plain, separators=(",", ":"), sort_keys=True, check_circular=False
).encode
