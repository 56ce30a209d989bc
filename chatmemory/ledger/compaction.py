"""The service that replaces messages in memory by a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from chatmemory.conf import fact_words
from chatmemory.ledger.adding import appended_count, summarized
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import Planned, planned
from chatmemory.ledger.validation import storable_messages
from chatmemory.recall.compactions import dropped_and_beside
from chatmemory.recall.facts import LIMIT
from chatmemory.recall.summary_plan import SummaryOptions, SummaryPlan
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.compaction import messages_of, summary_message


def compact(
    memory_id: str,
    summary: str,
    *,
    trigger: str = "",
    actor: str = "",
    expected_version: int | None = None,
    **options: Unpack[SummaryOptions],
) -> ChangeResult:
    """Replace messages of the window by a summary, as one step.

        services.compact("order-7741", "They ask for their parcel.", keep_last=4)

    Give exactly one of these options. It says which messages are replaced:

    - `covering`: the messages with these seqs.
    - `keep_last`: all but this number of messages at the end.
    - `keep_tokens`: all but the last messages that together have at most this number of tokens.

    With `keep_last` and `keep_tokens`, a leading system message and pinned messages stay. A tool
    call is not separated from its results.

    With `append_terms`, up to this number of exact terms that the summary lacks are appended to its
    text, if there is room. Nothing is appended if the policy has an index.

    `trigger` is the note of the step, such as "auto". A redaction does not erase the note.

    Raises InvalidValue, InvalidMessage, MessageTooLarge, MemoryNotFound, MessageNotFound (not in
    memory), NotCompactable, VersionConflict.
    """
    return plan_compaction(
        memory_id,
        summary,
        trigger=trigger,
        actor=actor,
        expected_version=expected_version,
        **options,
    ).write()


def plan_compaction(
    memory_id: str,
    summary: str,
    *,
    trigger: str = "",
    actor: str = "",
    expected_version: int | None = None,
    **options: Unpack[SummaryOptions],
) -> Planned[ChangeResult]:
    """Prepare a compaction without locking the conversation. The method `write` of the result
    stores the compaction.

    Takes the arguments of `compact`, and raises its exceptions.
    """
    plan, words = SummaryPlan(**options), fact_words()
    storable_messages([summary_message(summary)])
    return planned(
        memory_id,
        lambda recorder: recorder.record(summarized(recorder, summary, plan, words)),
        actor=actor,
        note=trigger,
        expected_version=expected_version,
    )


@dataclass(frozen=True)
class CompactionPreview:
    """A preview of a compaction: what would change, and which exact terms the summary lacks.

    - `covered`: the seqs of the messages that would leave.
    - `change`: the result that `compact` would return.
    - `terms`: exact terms that the messages in `covered` contain and the summary lacks, the most
      important first. There are at most 50, or at most `append_terms` if that is more.
    - `appended`: how many of the `terms` would be appended to the summary, from the first on.
    - `beside`: how many of the `terms` would not be lost, because a message that stays has them,
      too.
    """

    covered: tuple[int, ...]
    change: ChangeResult
    terms: tuple[str, ...]
    appended: int
    beside: int = 0


@one_snapshot()
def preview_compaction(
    memory_id: str, summary: str, **options: Unpack[SummaryOptions]
) -> CompactionPreview:
    """Return what `compact` would do with the same arguments. Raises the same exceptions."""
    plan = SummaryPlan(**options)
    summary_message(summary)
    recorder = Recorder(find_memory(memory_id))
    transition = summarized(recorder, summary, plan, fact_words())
    covered = [eviction.entry for eviction in transition.evictions]
    most = max(LIMIT, plan.append_terms)
    replaced, words = messages_of(covered), fact_words()
    stay = messages_of(each for each in transition.arrivals if each.seq)
    terms, beside = dropped_and_beside(replaced, summary, stay, most, words=words)
    appended = appended_count(transition, summary, terms)
    change = recorder.record(transition)
    return CompactionPreview(
        tuple(each.seq for each in covered), change, tuple(terms), appended, beside
    )
