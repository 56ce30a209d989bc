"""Redaction: permanently removes the text of a message, also from its copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Literal

from chatmemory import database
from chatmemory.database_errors import leaving_out_lost_nodes
from chatmemory.exceptions import InvalidValue, MessageNotFound
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.erasure import erase_derived, record_erasure
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import locked
from chatmemory.ledger.validation import check_ids, check_seqs, check_whole_number
from chatmemory.ledger.windows import read_message
from chatmemory.models import AuditEntry, Memory, Message
from chatmemory.reading.summaries import summaries_covering
from chatmemory.recall.index import TITLE, index_of
from chatmemory.search import user_labels
from chatmemory.sqlite_files import empty_log_after_erasure
from inspector.rooms.erasure.copies import copies, copies_of
from inspector.rooms.erasure.terms import holding_terms


def redact(
    memory_id: str,
    seq: int,
    *,
    actor: str = "",
    expected_version: int | None = None,
    branches: Iterable[str] = (),
    summaries: Iterable[int] | Literal[True] = (),
) -> ChangeResult | None:
    """Remove a message's text from history, memory and search, as a step. This cannot be undone.

    The type and the token count are kept. Stored data that may reveal the text is erased as well:
    the conversation's trials (simulations), stored responses, and the fingerprint of its import.

    - `branches` are IDs of branches. In these branches, copies of the message and of the redacted
      summaries are redacted, too.
    - `summaries` are the seqs of summaries to redact as well. Each must cover the message: the
      summary replaced the message in memory, or replaced an earlier summary of the message. True
      stands for all covering summaries that contain an exact term of the message, in this
      conversation and in `branches`.

    Returns None if the message was already redacted. Raises MemoryNotFound, MessageNotFound,
    VersionConflict, and InvalidValue, such as for a summary that does not cover the message.
    """
    check_whole_number(seq, "seq")
    chosen = check_ids(branches)
    covering = summaries if summaries is True else check_seqs(summaries, "summaries")
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        row = Message.objects.filter(memory=recorder.memory, seq=seq).first()
        if row is None:
            raise MessageNotFound(f"the conversation {memory_id!r} has no message #{seq}")
        if row.redacted_step is not None:
            return None
        with_it = _chosen_summaries(row, covering)
        nested: Literal[True] | tuple[()] = True if covering is True else ()
        for each in (row, *with_it):
            for copy in copies_of(each, chosen):
                redact(copy.memory_id, copy.seq, actor=actor, summaries=nested)
        indexes = indexes_naming(recorder.memory, [each.seq for each in (row, *with_it)])
        erase_derived(recorder.memory, [each.seq for each in (row, *with_it, *indexes)])
        recorder.set_labels(user_labels(recorder.memory.labels))
        result, *_ = [_redact_one(recorder, each, actor) for each in (row, *with_it)]
        for each in indexes:
            _audited(recorder.redact_index(each, redacted_seqs(recorder.memory)), each, actor)
        return result


def indexes_naming(memory: Memory, seqs: Sequence[int]) -> list[Message]:
    """Return the index messages that must change when the messages `seqs` are redacted.

    An index message lists exact terms of messages that left memory. It must change if one of its
    terms comes only from redacted messages. Index messages that have left memory are included.
    """
    gone = {*redacted_seqs(memory), *seqs}
    rows = Message.objects.filter(memory=memory, text__startswith=f"[{TITLE}")
    found = ((row, index_of(read_message(row))) for row in rows.order_by("seq"))
    return [row for row, index in found if index is not None and index.without(gone) != index]


def redacted_seqs(memory: Memory) -> set[int]:
    rows = Message.objects.filter(memory=memory, redacted_step__isnull=False)
    return set(rows.values_list("seq", flat=True))


def _chosen_summaries(row: Message, chosen: Set[int] | Literal[True]) -> list[Message]:
    """Return the summaries to redact with a message."""
    if not chosen:
        return []
    standing = summaries_covering(row.memory_id, row.seq)
    if chosen is True:
        return holding_terms(row, standing)
    for seq in sorted(chosen - {summary.seq for summary in standing})[:1]:
        raise InvalidValue(
            f"message #{seq} is not a summary that covers message #{row.seq}: leave {seq} out of "
            "summaries"
        )
    return [summary for summary in standing if summary.seq in chosen]


def _redact_one(recorder: Recorder, row: Message, actor: str) -> ChangeResult | None:
    return _audited(recorder.redact(row), row, actor)


def _audited(result: ChangeResult | None, row: Message, actor: str) -> ChangeResult | None:
    """Write an audit entry if a redaction changed something, and return the result of the
    redaction.
    """
    if result is not None:
        detail: dict[str, int | str] = {"seq": row.seq, "step": result.step or 0}
        record_erasure(AuditEntry.Action.REDACT, row.memory_id, actor, detail)
        database.on_commit(empty_log_after_erasure)
    return result


def known_copies(memory_id: str, seq: int) -> list[tuple[str, int]] | None:
    """Return the copies of a message in branches, as pairs of conversation ID and seq. None if the
    database, or a node of its cluster that may have copies, is down.
    """
    with leaving_out_lost_nodes():
        return copies(memory_id, seq)
    return None
