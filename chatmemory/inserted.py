"""The rows that changes insert: messages, stays and steps.

These classes have the columns of the models; tests/ledger/test_sql.py compares them. Instances of
the models would take several times as long to make, which matters in an import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from chatmemory.columns import fill_in, with_columns
from chatmemory.messages.codec import attributes_beside
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.windows.window import Entry, Totals


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be added.

    - `client_id`: the client's id for the message, or None.
    - `said_at`: the time at which the message was said, or None for now.
    - `columns`: the values of declared columns by name (see `chatmemory.columns`), which a branch
      copies from the original message. None if they are to be computed.
    """

    message: ChatMessage
    client_id: str | None = None
    said_at: datetime | None = None
    columns: Mapping[str, object] | None = field(default=None, hash=False)


# Wide: a row of the table, with a field for each column.
@dataclass(slots=True)
@with_columns(Message)
class InsertedMessage:
    """A new row of table chatmemory_message. For the columns, see `chatmemory.models.Message`."""

    memory_id: str
    seq: int
    type: str
    text: str
    frame: str
    attributes: str | None
    tokens: int
    origin: str
    said_at: datetime
    client_id: str | None
    salt: bytes | None = None  # filled in by the hook `sealing`, as are digests
    commitment: bytes = b""
    redacted_step: int | None = None

    @classmethod
    def of(
        cls, memory_id: str, entry: Entry, sent: NewMessage | None, now: datetime
    ) -> InsertedMessage:
        """Return the row of a new message. `entry` is the message in the window, with its numbers
        such as `seq`.

        `sent` has the client's values for the message, such as `client_id`. If `sent` is None or
        has no `said_at`, the time of the message is `now`.
        """
        message = entry.message
        assert message is not None
        row = cls(
            memory_id=memory_id,
            seq=entry.seq,
            type=str(entry.type),
            text=text_of(message),
            frame=entry.frame,
            attributes=attributes_beside(message),
            tokens=entry.tokens,
            origin=entry.origin,
            said_at=(sent.said_at if sent else None) or now,
            client_id=sent.client_id if sent else None,
        )
        sent = sent or NewMessage(message)
        fill_in(row, Message, sent, sent.columns)
        return row


# Wide: a row of the table, with a field for each column.
@dataclass(slots=True)
@with_columns(Stay)
class InsertedStay:
    """A new row of table chatmemory_stay: a message's period in memory. For the columns, see
    `chatmemory.models.Stay`.
    """

    memory_id: str
    n: int
    seq: int
    entered_step: int
    rank: int
    type: str
    has_calls: bool
    pinned: bool
    tokens: int
    size: int
    overrides: str | None = None
    left_step: int | None = None
    reason: str | None = None

    @classmethod
    def of(cls, memory_id: str, entry: Entry, step: int) -> InsertedStay:
        """Return the row of a stay that begins at `step`. `entry` is the message in the window,
        with its numbers such as `n`, the number of the stay.
        """
        row = cls(
            memory_id=memory_id,
            n=entry.n,
            seq=entry.seq,
            entered_step=step,
            rank=entry.rank,
            type=str(entry.type),
            has_calls=entry.has_calls,
            pinned=entry.pinned,
            tokens=entry.tokens,
            size=entry.size,
            overrides=entry.overrides,
        )
        fill_in(row, Stay, entry)
        return row


# Wide: a row of the table, with a field for each column.
@dataclass(slots=True)
@with_columns(Step)
class InsertedStep:
    """A new row of table chatmemory_step: a change of a conversation. For the columns, see
    `chatmemory.models.Step`.
    """

    memory_id: str
    n: int
    kind: str
    at: datetime
    actor: str
    by_client: bool
    count_before: int
    tokens_before: int
    count_after: int
    tokens_after: int
    history_tokens: int
    last_seq: int
    said_count: int
    last_stay: int
    oldest: int
    seq: int | None
    note: str
    policy_kind: str | None
    policy_limit: int | None
    policy_estimator: str
    policy_options: JsonDict
    commitment: bytes | None = None
    digest: bytes = b""

    @classmethod
    def of(
        cls,
        memory: Memory,
        kind: str,
        before: Totals,
        *,
        at: datetime,
        actor: str,
        by_client: bool,
        seq: int | None,
        note: str,
    ) -> InsertedStep:
        """Return the row of the newest step. `memory` is the conversation after the step, and
        `before` are the totals of its window before the step.
        """
        row = cls(
            memory_id=memory.id,
            n=memory.last_step,
            kind=kind,
            at=at,
            actor=actor,
            by_client=by_client,
            count_before=before.count,
            tokens_before=before.tokens,
            count_after=memory.window_count,
            tokens_after=memory.window_tokens,
            history_tokens=memory.history_tokens,
            last_seq=memory.last_seq,
            said_count=memory.said_count,
            last_stay=memory.last_stay,
            oldest=memory.oldest,
            seq=seq,
            note=note,
            policy_kind=memory.policy_kind,
            policy_limit=memory.policy_limit,
            policy_estimator=memory.policy_estimator,
            policy_options=memory.policy_options,
        )
        fill_in(row, Step, memory)
        return row
