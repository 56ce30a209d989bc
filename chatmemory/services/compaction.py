"""The service that puts a summary in the place of messages that are in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from chatmemory.conf import fact_words
from chatmemory.core.compaction import (
    SummaryOptions,
    SummaryPlan,
    messages_of,
    summary_message,
)
from chatmemory.core.messages import ChatMessage
from chatmemory.core.recall.compactions import LIMIT, dropped_terms
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, Window
from chatmemory.ledger.adding import count_ahead, counted_entries
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import stay_entries
from chatmemory.services.transaction import locked
from chatmemory.services.validation import storable_messages


def compact(
    memory_id: str,
    summary: str,
    *,
    trigger: str = "",
    actor: str = "",
    expected_version: int | None = None,
    **options: Unpack[SummaryOptions],
) -> ChangeResult:
    """Put a summary in the place of messages of the window, as one step.

        services.compact("order-7741", "They ask for their parcel.", keep_last=4)

    It covers the messages with the seqs `covering`, or all but the last `keep_last` messages or
    `keep_tokens` tokens; a tool call stays with its results. Behind its text stand up to
    `append_terms` exact terms that it would lose, if there is room. `trigger` is the note of the
    step, such as "auto". Raises InvalidValue, InvalidMessage, MemoryNotFound, MessageNotFound (not
    in memory), NotCompactable, VersionConflict.
    """
    plan = SummaryPlan(**options)
    count_ahead(memory_id, storable_messages([summary_message(summary)]))
    with locked(
        memory_id, actor=actor, expected_version=expected_version, note=trigger
    ) as recorder:
        return recorder.record(_decided(recorder, summary, plan))


@dataclass(frozen=True)
class CompactionPreview:
    """What a compaction would do: the messages that leave, the sums, and the exact terms that the
    summary would lose, of which `appended` stand behind its text.
    """

    covered: tuple[int, ...]
    change: ChangeResult
    terms: tuple[str, ...]
    appended: int


@one_snapshot()
def preview_compaction(
    memory_id: str, summary: str, **options: Unpack[SummaryOptions]
) -> CompactionPreview:
    """Return what `compact` would do with the same arguments. Raises its exceptions."""
    plan = SummaryPlan(**options)
    summary_message(summary)
    recorder = Recorder(find_memory(memory_id))
    transition = _decided(recorder, summary, plan)
    covered = [*stay_entries(each.entry for each in transition.evictions)]
    most = max(LIMIT, plan.append_terms)
    terms = dropped_terms(messages_of(covered), summary, most, words=fact_words())
    arrival = transition.evictions[0].because
    texts = (summary_message(summary, terms[:count]) for count in range(len(terms) + 1))
    appended = next(n for n, text in enumerate(texts) if arrival and text == arrival.message)
    change = recorder.record(transition)
    return CompactionPreview(tuple(each.seq for each in covered), change, tuple(terms), appended)


def _decided(recorder: Recorder, summary: str, plan: SummaryPlan) -> Transition:
    entries = [*stay_entries(recorder.window.with_messages())]

    def entry_of(message: ChatMessage) -> Entry:
        return counted_entries(recorder.memory, [message])[0]

    return plan.transition(
        Window(entries),
        summary,
        entry_of,
        recorder.policy,
        numbers=[entry.seq for entry in entries],
        words=fact_words(),
    )
