"""The service that puts a summary in the place of messages that are in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chatmemory.core.compaction import (
    all_but_last,
    check_covered,
    check_kept,
    summary_message,
)
from chatmemory.core.compaction import (
    compact as compacted,
)
from chatmemory.core.exceptions import MessageNotFound
from chatmemory.ledger.adding import count_ahead, counted_entries
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.windows import StayEntry, stay_entries
from chatmemory.services.transaction import locked
from chatmemory.services.validation import storable_messages


def compact(
    memory_id: str,
    summary: str,
    *,
    covering: Collection[int] | None = None,
    keep_last: int | None = None,
    keep_tokens: int | None = None,
    terms: Sequence[str] = (),
    trigger: str = "",
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Put a summary in the place of messages of the window, as one step.

    It covers the messages with the seqs `covering`, or all but the last `keep_last` messages or
    `keep_tokens` tokens; a tool call stays with its results. The exact `terms` stand behind its
    text. `trigger` is the note of the step, such as "auto". Raises InvalidValue, MemoryNotFound,
    MessageNotFound (not in memory), NotCompactable, VersionConflict.
    """
    check_kept(covering=covering, keep_last=keep_last, keep_tokens=keep_tokens)
    messages = storable_messages([summary_message(summary, terms)])
    count_ahead(memory_id, messages)
    with locked(
        memory_id, actor=actor, expected_version=expected_version, note=trigger
    ) as recorder:
        entries = [*stay_entries(recorder.window.with_messages())]
        if covering is None:
            covered = all_but_last(entries, messages=keep_last, tokens=keep_tokens)
        else:
            covered = [*_with_seqs(memory_id, entries, covering)]
        check_covered(entries, covered)
        (arrival,) = counted_entries(recorder.memory, messages)
        return recorder.record(compacted(recorder.window, covered, arrival, recorder.policy))


def _with_seqs(
    memory_id: str, entries: Sequence[StayEntry], seqs: Collection[int]
) -> list[StayEntry]:
    wanted = set(seqs)
    covered = [entry for entry in entries if entry.seq in wanted]
    for seq in sorted(wanted - {entry.seq for entry in covered})[:1]:
        raise MessageNotFound(f"#{seq} is not in the memory of {memory_id!r}")
    return covered
