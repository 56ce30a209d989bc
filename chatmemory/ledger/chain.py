"""The chain of digests, which shows alterations that a replay cannot.

Each step has a digest over the digest before it and over everything that the step wrote: its own
columns, the commitments of its messages, and the stays that it began and ended. The newest digest,
the head, is in the conversation's row. Whoever kept a head can tell later that nothing up to its
step was altered or cut off; without a kept head, an attacker who can write to the database can
also compute the chain anew.

A commitment is a digest over columns and a random salt. It stays when the words and the salt are
erased, and does not let anybody guess the words.

A digest is the SHA-256 of a JSON list: the version, what the digest is of, and values in a fixed
order. The JSON is ASCII without spaces, objects are sorted by their names, times are microseconds
since 1970 and bytes are hexadecimal.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple

from chatmemory.ledger.contradictions import Contradicted, Contradiction, expect, naming
from chatmemory.ledger.overrides import digest_of_overrides
from chatmemory.ledger.sql import InsertedMessage, InsertedStay, InsertedStep
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step

VERSION = 3
SALT_BYTES = 16

Bytes = bytes | memoryview  # what databases return

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


def stored(value: Bytes | None) -> bytes:
    """Return the content of a column of bytes; of a number, `bytes` would make as many zeros."""
    return b"" if value is None else bytes(memoryview(value))


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def begin(memory: Memory, previous_head: bytes | None) -> None:
    """Begin the chain of a new conversation, which is not yet saved."""
    memory.labels_salt = new_salt()
    memory.first_labels = commitment_of_labels(memory.labels, memory.labels_salt)
    memory.previous_head = previous_head
    memory.head = first_digest(memory)


def first_digest(memory: Memory) -> bytes:
    """Return the digest before step 1. It continues the chain of a deleted one with the same id."""
    before = memory.first_labels, memory.previous_head
    return _digest("conversation", memory.pk, memory.created_at, *before)


def commitment_of(message: Message | InsertedMessage) -> bytes:
    """Return the digest of a message's columns and its salt, which a redacted one has not."""
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

    `commitments` are those of its messages by seq, `begun` the stays that it began (see
    `encoded_stay`), `ended` the number and the reason of those that it ended. Stays are in the
    order of their numbers.
    """
    return _digest("step", previous, *_step_columns(step), commitments, begun, ended)


def _digest(of: str, *values: Any) -> bytes:
    return sha256(_as_json([VERSION, of, *values]).encode("ascii")).digest()


def _plain(value: datetime | Bytes) -> int | str:
    """Return what JSON has in place of a time, or of bytes."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    return value.hex()


_as_json = json.JSONEncoder(
    default=_plain, separators=(",", ":"), sort_keys=True, check_circular=False
).encode


# The check against rows, audit entries and heads that were kept elsewhere


class ChainCheck:
    """The check of a chain, row by row in the order of the ledger. Its methods raise Contradicted
    for a row that is not what its digest says.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._digest = first_digest(memory)
        self._labels = stored(memory.first_labels)
        self._redacted: dict[int, Message] = {}  # without words, by the step of the redaction
        self._audited = _redactions(memory.pk)

    def check_message(self, row: Message) -> None:
        """Check a message, which is what was said or what its redaction left."""
        commitment = commitment_of(row)
        if row.redacted_step is not None:
            left = Message(seq=row.seq, commitment=commitment)
            other = self._redacted.setdefault(row.redacted_step, left)
            expect(row, f"the message redacted at step {row.redacted_step}", other.seq, row.seq)
        elif commitment != stored(row.commitment):
            raise Contradicted(row, "is not what its digest says: it was altered")

    def check_step(
        self,
        step: Step,
        commitments: Sequence[Bytes],
        begun: Sequence[tuple[Any, ...]],
        ended: Sequence[tuple[int, str]],
    ) -> None:
        """Check a step with what it wrote; see `digest_of`."""
        if step.kind == Step.Kind.REDACT:
            self._check_redaction(step)
        elif step.kind == Step.Kind.LABELS:
            self._labels = stored(step.commitment)
        self._digest = digest_of(self._digest, step, commitments, begun, ended)
        if stored(step.digest) != self._digest:
            raise Contradicted(step, "is not what its digest says: it or its rows were altered")

    def check_end(self) -> None:
        """Check the head, the labels and the audit entries after the last step."""
        for n, row in self._redacted.items():
            raise Contradicted(row, f"redacted at step {n}, which is no redaction")
        memory = self._memory
        if stored(memory.head) != self._digest:
            raise Contradicted(memory, "the head is not the digest of the newest step")
        if commitment_of_labels(memory.labels, memory.labels_salt) != self._labels:
            raise Contradicted(memory, "the labels are not what their digest says")
        if memory.previous_head is not None:
            head = stored(memory.previous_head).hex()
            if all(deletion.head != head for deletion in _deletions(memory.pk)):
                raise Contradicted(memory, "the audit entry of the deletion before is missing")
        for seq, step, _ in self._audited:
            what = f"tells of a redaction of #{seq} that there was not"
            raise Contradicted(f"an audit entry of step {step}", what)

    def _check_redaction(self, step: Step) -> None:
        row = self._redacted.pop(step.n, None)
        expect(step, "seq", step.seq, row and row.seq)
        if row and stored(step.commitment) != row.commitment:
            raise Contradicted(row, "is not what its redaction left: it was altered")
        entries = self._audited.pop((step.seq, step.n, step.actor), 0)
        if not entries:
            raise Contradicted(step, "its audit entry is missing")
        if entries > 1:
            raise Contradicted(step, f"has {entries} audit entries")


def check_hidden(memory_id: str) -> None:
    """Raise Contradicted for a conversation that is hidden as if its deletion had begun."""
    hidden = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    for steps, head in hidden.values_list("last_step", "head"):
        if _Deletion(steps, stored(head).hex()) not in _deletions(memory_id):
            what = "is hidden as one that is being deleted, but no audit entry tells of that"
            raise Contradicted("the conversation", what)


def verify_head(memory_id: str, step: int, head: str) -> Contradiction | None:
    """Return what contradicts a head that was kept at a step (in hexadecimal), or None.

    A missing step or conversation, or another head, contradicts it, unless the conversation was
    deleted since: an audited deletion covers it. The id may be that of a new conversation, which
    has other heads.
    """
    try:
        with naming(f"step {step}"):
            found = _head_at(memory_id, step)
            if head == found or any(each.covers(step, head) for each in _deletions(memory_id)):
                return None
    except Contradicted as unreadable:
        return Contradiction(memory_id, unreadable.row, unreadable.what)
    other, gone = "its digest is not the one that was kept", "was kept as the head, but is gone"
    return Contradiction(memory_id, f"step {step}", other if found else gone)


def _head_at(memory_id: str, step: int) -> str:
    """Return the digest of a step, in hexadecimal; that of step 0 is the conversation's own.

    Of a conversation that is hidden, as its deletion has begun, there is nothing.
    """
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        return ""
    if step == 0:
        return first_digest(memory).hex()
    digests = Step.objects.filter(memory=memory, n=step).values_list("digest", flat=True)
    return stored(digests.first()).hex()


class _Deletion(NamedTuple):
    """What an audit entry tells of a deletion: how many steps there were, and the head."""

    steps: int | str | None
    head: int | str | None

    def covers(self, step: int, head: str) -> bool:
        """Return whether a head may have been that of the conversation at a step.

        The entry knows the head at the last step only. Nothing is left of earlier steps to compare
        with, so any head is accepted there; but a conversation whose heads were kept had one.
        """
        if not isinstance(self.steps, int) or not isinstance(self.head, str):
            return False
        return step < self.steps or (step, head) == self


def _deletions(memory_id: str) -> Iterator[_Deletion]:
    entries = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    for detail in entries.values_list("detail", flat=True):
        yield _Deletion(_value(detail, "steps"), _value(detail, "head"))


def _redactions(memory_id: str) -> Counter[tuple[int | str | None, int | str | None, str]]:
    """Return the message, the step and the actor of each redaction since the last deletion of the
    id, and how often it was entered.
    """
    entries = AuditEntry.objects.filter(memory_id=memory_id).order_by("pk")
    deleted = entries.filter(action=AuditEntry.Action.DELETE).values_list("pk", flat=True).last()
    redacted = entries.filter(action=AuditEntry.Action.REDACT, pk__gt=deleted or 0)
    found = redacted.values_list("detail", "actor").iterator()
    return Counter((_value(detail, "seq"), _value(detail, "step"), by) for detail, by in found)


def _value(detail: Any, name: str) -> int | str | None:
    found = detail.get(name) if isinstance(detail, dict) else None
    return found if isinstance(found, (int, str)) else None
