"""The rows of a change. Only `PendingRows` makes what writes messages, stays and steps.

`rows_for` turns a numbered transition into rows and changes nothing; `PendingRows` collects the
rows of several changes, which are written together.
"""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from chatmemory.core.codec import frame_of, message_to_json
from chatmemory.core.messages import text_of
from chatmemory.core.transitions import Transition
from chatmemory.ledger import chain, indexing, statements
from chatmemory.ledger.changes import NewMessage
from chatmemory.ledger.counters import Counters
from chatmemory.ledger.entries import NumberedTransition, StayEntry
from chatmemory.ledger.new_rows import new_row
from chatmemory.ledger.writes import Write
from chatmemory.models import Memory, Message, Stay, Step


class Stamp(NamedTuple):
    """The data of a step other than its counters: the conversation, the kind, the actor, the time.

    `sent` is the message of an add as the client sent it, `seq` that of a redaction or a pin.
    `payloads` are those of new messages by the `id` of each, where they are written already; a row
    takes its own out.
    """

    memory: Memory
    kind: str
    actor: str
    at: datetime
    by_client: bool = False
    note: str = ""
    seq: int | None = None
    sent: NewMessage | None = None
    commitment: bytes | None = None
    payloads: dict[int, str] = {}


class Rows(NamedTuple):
    """The rows that one change adds, and the stays that it ends: (number, reason)."""

    messages: list[Message]
    stays: list[Stay]
    ended: list[tuple[int, str]]
    step: Step


def rows_for(change: NumberedTransition, before: Counters, after: Counters, stamp: Stamp) -> Rows:
    """Return the rows of a numbered transition, given the counters before and after it.

    The step has the policy of `stamp.memory`.
    """
    new = (entry for entry in change.entering if entry.seq > before.last_seq)
    rows = Rows(
        messages=[_message(entry, stamp) for entry in new],
        stays=[_stay(entry, after.last_step, stamp) for entry in change.entering],
        ended=[(leaving.entry.n, leaving.reason) for leaving in change.leaving],
        step=_step(change.transition, after, stamp),
    )
    rows.step.digest = chain.digest_of(
        stamp.memory.head,
        rows.step,
        [row.commitment for row in sorted(rows.messages, key=attrgetter("seq"))],
        [chain.encoded_stay(row) for row in sorted(rows.stays, key=attrgetter("n"))],
        sorted((n, str(reason)) for n, reason in rows.ended),
    )
    return rows


def _message(entry: StayEntry, stamp: Stamp) -> Message:
    assert entry.message is not None
    payload = stamp.payloads.pop(id(entry.message), "") or message_to_json(entry.message)
    row = new_row(
        Message,
        memory_id=stamp.memory.pk,
        seq=entry.seq,
        type=entry.type,
        text=text_of(entry.message),
        frame=frame_of(entry.message, payload),
        tokens=entry.tokens,
        origin=entry.origin,
        said_at=(stamp.sent.said_at if stamp.sent else None) or stamp.at,
        client_id=stamp.sent.client_id if stamp.sent else None,
        salt=chain.new_salt(),
    )
    row.commitment = chain.commitment_of(row)
    return row


def _stay(entry: StayEntry, step: int, stamp: Stamp) -> Stay:
    return new_row(
        Stay,
        memory_id=stamp.memory.pk,
        n=entry.n,
        seq=entry.seq,
        entered_step=step,
        rank=entry.rank,
        type=entry.type,
        has_calls=entry.has_calls,
        pinned=entry.pinned,
        tokens=entry.tokens,
        size=entry.size,
    )


def _step(transition: Transition, counters: Counters, stamp: Stamp) -> Step:
    step = new_row(
        Step,
        memory_id=stamp.memory.pk,
        n=counters.last_step,
        kind=stamp.kind,
        at=stamp.at,
        actor=stamp.actor,
        by_client=stamp.by_client,
        count_before=transition.before.count,
        tokens_before=transition.before.tokens,
        count_after=transition.after.count,
        tokens_after=transition.after.tokens,
        history_tokens=counters.history_tokens,
        last_seq=counters.last_seq,
        said_count=counters.said_count,
        last_stay=counters.last_stay,
        oldest=counters.oldest,
        note=stamp.note,
        seq=stamp.seq,
        commitment=stamp.commitment,
    )
    Step.copy_policy(step, stamp.memory)
    return step


class PendingRows:
    """The rows of several changes to one conversation, not yet written."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._stays: dict[int, Stay] = {}
        self._steps: list[Step] = []
        self._ended: dict[int, tuple[int, str]] = {}

    def add(self, rows: Rows) -> None:
        """Add the rows of a change. A stay that is not yet written is ended in memory."""
        self._messages += rows.messages
        self._stays |= {stay.n: stay for stay in rows.stays}
        self._steps.append(rows.step)
        for n, reason in rows.ended:
            if n in self._stays:
                self._stays[n].left_step, self._stays[n].reason = rows.step.n, reason
            else:
                self._ended[n] = rows.step.n, reason

    def writes(self, memory: Memory) -> list[Write]:
        """Return what writes all rows, inside a transaction that has locked the conversation.

        The rows are then no longer kept: what writes them has their values.
        """
        writes = [
            statements.endings(memory.pk, self._ended),
            *indexing.insertion(memory.pk, self._messages),
        ]
        self._messages.clear()
        writes.append(statements.insertion(list(self._stays.values())))
        self._stays.clear()
        writes.append(statements.insertion(self._steps))
        self._steps.clear()
        return writes
