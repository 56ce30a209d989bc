"""The service that puts a summary in the place of messages that are in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from chatmemory.conf import fact_words
from chatmemory.core.compaction import (
    all_but_last,
    check_covered,
    check_kept,
    compact_with_terms,
    summary_message,
)
from chatmemory.core.exceptions import MessageNotFound
from chatmemory.core.messages import ChatMessage
from chatmemory.core.recall.compactions import dropped_terms
from chatmemory.core.window import Entry
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
    append_terms: int = 0,
    trigger: str = "",
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Put a summary in the place of messages of the window, as one step.

    It covers the messages with the seqs `covering`, or all but the last `keep_last` messages or
    `keep_tokens` tokens; a tool call stays with its results. Behind its text stand up to
    `append_terms` exact terms that it would lose, if there is room. `trigger` is the note of the
    step, such as "auto". Raises InvalidValue, MemoryNotFound, MessageNotFound (not in memory),
    NotCompactable, VersionConflict.
    """
    check_kept(append_terms, covering=covering, keep_last=keep_last, keep_tokens=keep_tokens)
    count_ahead(memory_id, storable_messages([summary_message(summary)]))
    with locked(
        memory_id, actor=actor, expected_version=expected_version, note=trigger
    ) as recorder:
        entries = [*stay_entries(recorder.window.with_messages())]
        if covering is None:
            covered = all_but_last(entries, messages=keep_last, tokens=keep_tokens)
        else:
            covered = [*_with_seqs(memory_id, entries, covering)]
        check_covered(entries, covered)
        replaced = [entry.message for entry in covered if entry.message is not None]
        terms = dropped_terms(replaced, summary, append_terms, words=fact_words())

        def entry_of(message: ChatMessage) -> Entry:
            return counted_entries(recorder.memory, [message])[0]

        transition = compact_with_terms(
            recorder.window, covered, summary, terms, entry_of, recorder.policy
        )
        return recorder.record(transition)


def _with_seqs(
    memory_id: str, entries: Sequence[StayEntry], seqs: Collection[int]
) -> list[StayEntry]:
    wanted = set(seqs)
    covered = [entry for entry in entries if entry.seq in wanted]
    for seq in sorted(wanted - {entry.seq for entry in covered})[:1]:
        raise MessageNotFound(f"#{seq} is not in the memory of {memory_id!r}")
    return covered
