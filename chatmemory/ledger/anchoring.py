"""Anchoring: digests for the rows that are older than the chain of digests; see `chain`.

The rows get what they would have got when they were written: messages a salt and a commitment,
steps a digest. The first step that was written with a digest follows no older one, so the anchor,
which is the head afterwards, contains the digests of both ends. The chain then vouches for all
rows as they were at that time; what happened to the older ones before, only a replay can show.

Each function does a part within a lock of the caller; all is derived from the rows, so whoever is
interrupted begins again where digests are missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from django.db.models import Q
from django.utils import timezone

from chatmemory import database
from chatmemory.ledger import chain
from chatmemory.ledger.encoding import Bytes, Encoded
from chatmemory.ledger.reading import LedgerRows
from chatmemory.models import Memory, Message, Step

NOT_ANCHORED = Q(anchored_at=None) & (Q(first_labels=None) | Q(older_steps__isnull=False))
BATCH = 1_000

_SET_COMMITMENT = """UPDATE chatmemory_message SET salt = %s, commitment = %s
    WHERE memory_id = %s AND seq = %s"""
_SET_DIGEST = """UPDATE chatmemory_step SET digest = %s
    WHERE memory_id = %s AND n = %s AND digest IS NULL"""

Digests = list[tuple[int, bytes]]


def begin(memory: Memory) -> None:
    """Store how many steps are older than the chain, and commit to the labels."""
    if memory.older_steps is not None:
        return
    steps = Step.objects.filter(memory=memory)
    first = steps.filter(digest__isnull=False).order_by("n").values_list("n", flat=True).first()
    memory.older_steps = memory.last_step if first is None else first - 1
    if memory.labels_salt is None:
        memory.labels_salt = chain.new_salt()
        commitment = chain.commitment_of_labels(memory.labels, memory.labels_salt)
        changes = steps.filter(kind=Step.Kind.LABELS).order_by("-n").values_list("n", flat=True)
        if changes:
            steps.filter(n=changes[0]).update(commitment=commitment)
        else:
            memory.first_labels = commitment
    memory.save(update_fields=["older_steps", "labels_salt", "first_labels"])


def commit_messages(memory: Memory, after: int) -> int | None:
    """Give commitments to a batch of messages behind a seq; return the last seq of the batch, or
    None behind the last message.

    Of a message that was redacted, what is left is committed by the step of its redaction.
    """
    rows = Message.objects.filter(memory=memory, seq__gt=after, seq__lte=_last_older_seq(memory))
    batch = list(rows.order_by("seq")[:BATCH])
    with database.connection().cursor() as cursor:
        cursor.executemany(_SET_COMMITMENT, [_commitment(row) for row in batch if _is_said(row)])
    steps = Step.objects.filter(memory=memory, commitment=None, digest=None)
    for row in batch:
        if row.redacted_step is not None:
            steps.filter(n=row.redacted_step).update(commitment=chain.commitment_of(row))
    return batch[-1].seq if batch else None


def missing_digests(memory: Memory, after: int) -> Digests:
    """Return the number and the digest of the next steps behind a step that need one. This needs
    no lock: what they wrote does not change any more.
    """
    steps = Step.objects.filter(memory=memory, n__lte=memory.older_steps)
    missing = steps.filter(digest=None, n__gt=after)
    first = missing.order_by("n").values_list("n", flat=True).first()
    if first is None:
        return []
    before = steps.filter(n=first - 1).first()
    previous = before.digest if before else chain.first_digest(memory)
    digests: Digests = []
    rows = LedgerRows(memory, before)
    for step in islice(rows.steps, min(BATCH, (memory.older_steps or 0) - first + 1)):
        begun: list[Encoded] = []
        said: list[Bytes | None] = []
        for stay, row, is_new in rows.begun(step.n):
            begun.append(chain.encoded_stay(stay))
            if is_new:
                said.append(row.commitment)
        ended = [(stay.n, str(stay.reason)) for stay in rows.ended(step.n).values()]
        previous = chain.digest_of(previous, step, said, begun, ended)
        digests.append((step.n, previous))
    return digests


def store_digests(memory: Memory, digests: Iterable[tuple[int, bytes]]) -> None:
    with database.connection().cursor() as cursor:
        cursor.executemany(_SET_DIGEST, [(digest, memory.pk, n) for n, digest in digests])


def finish(memory: Memory) -> None:
    """Connect the older steps with the chain, now that all have digests."""
    if memory.anchored_at is not None:
        return
    memory.anchored_at, memory.anchored_step = timezone.now(), memory.last_step
    older = _digest_at(memory, memory.older_steps or 0)
    memory.head = chain.anchor_of(memory, older, _digest_at(memory, memory.last_step))
    memory.save(update_fields=["anchored_at", "anchored_step", "head"])


def _is_said(row: Message) -> bool:
    return row.redacted_step is None and row.commitment is None


def _commitment(row: Message) -> tuple[bytes, bytes, str, int]:
    row.salt = chain.new_salt()
    return row.salt, chain.commitment_of(row), row.memory_id, row.seq


def _digest_at(memory: Memory, n: int) -> bytes:
    if n == 0:
        return chain.first_digest(memory)
    return bytes(Step.objects.get(memory=memory, n=n).digest or b"")


def _last_older_seq(memory: Memory) -> int:
    steps = Step.objects.filter(memory=memory, n=memory.older_steps or 0)
    return steps.values_list("last_seq", flat=True).first() or 0
