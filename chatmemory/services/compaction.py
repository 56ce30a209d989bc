"""The service that replaces messages in memory by a summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

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
from chatmemory.core.recall.compactions import LIMIT, dropped_terms
from chatmemory.core.recall.facts import Words
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, Window
from chatmemory.ledger.adding import count_ahead, counted_entries
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
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
    """Replace messages of the window by a summary, as one step.

    The summary covers the messages with the seqs `covering`, or all but the last `keep_last`
    messages or `keep_tokens` tokens; a tool call stays with its results. Up to `append_terms` exact
    terms that the summary would lose are appended to it, if there is room. `trigger` is the note of
    the step, such as "auto". Raises InvalidValue, MemoryNotFound, MessageNotFound (not in memory),
    NotCompactable, VersionConflict.
    """
    plan = CompactionPlan(summary, covering, keep_last, keep_tokens, append_terms)
    count_ahead(memory_id, storable_messages([summary_message(summary)]))
    with locked(
        memory_id, actor=actor, expected_version=expected_version, note=trigger
    ) as recorder:
        return recorder.record(plan.decided(recorder, fact_words())[0])


@dataclass(frozen=True)
class CompactionPreview:
    """What a compaction would do: the messages that leave, the sums, and the exact terms that the
    summary would lose, of which the first `appended` are appended to it.
    """

    covered: tuple[int, ...]
    change: ChangeResult
    terms: tuple[str, ...]
    appended: int


@one_snapshot()
def preview_compaction(
    memory_id: str,
    summary: str,
    *,
    covering: Collection[int] | None = None,
    keep_last: int | None = None,
    keep_tokens: int | None = None,
    append_terms: int = 0,
) -> CompactionPreview:
    """Return what `compact` would do with the same arguments. Raises its exceptions."""
    plan = CompactionPlan(summary, covering, keep_last, keep_tokens, append_terms)
    recorder = Recorder(find_memory(memory_id))
    transition, terms = plan.decided(recorder, fact_words())
    covered = [*stay_entries(each.entry for each in transition.evictions)]
    appended = len(plan.appended(transition, terms))
    change = recorder.record(transition)
    return CompactionPreview(tuple(each.seq for each in covered), change, tuple(terms), appended)


@dataclass(frozen=True)
class CompactionPlan:
    """A summary and the messages that it should cover: the arguments of `compact`.

    Raises InvalidValue and InvalidMessage.
    """

    summary: str
    covering: Collection[int] | None = None
    keep_last: int | None = None
    keep_tokens: int | None = None
    append_terms: int = 0

    def __post_init__(self) -> None:
        check_kept(
            self.append_terms,
            covering=self.covering,
            keep_last=self.keep_last,
            keep_tokens=self.keep_tokens,
        )
        summary_message(self.summary)

    def decided(self, recorder: Recorder, words: Words) -> tuple[Transition, list[str]]:
        """Return the transition, and the exact terms that the summary would lose."""
        memory = recorder.memory
        entries = [*stay_entries(recorder.window.with_messages())]
        if self.covering is None:
            covered = all_but_last(entries, messages=self.keep_last, tokens=self.keep_tokens)
        else:
            covered = [*_with_seqs(memory.pk, entries, self.covering)]
        check_covered(entries, covered)
        replaced = [entry.message for entry in covered if entry.message is not None]
        most = max(LIMIT, self.append_terms)
        terms = dropped_terms(replaced, self.summary, most, words=words)

        def entry_of(message: ChatMessage) -> Entry:
            return counted_entries(memory, [message])[0]

        chosen = terms[: self.append_terms]
        transition = compact_with_terms(
            Window(entries), covered, self.summary, chosen, entry_of, recorder.policy
        )
        return transition, terms

    def appended(self, transition: Transition, terms: Sequence[str]) -> Sequence[str]:
        """Return the terms that were appended, the first of those that the summary would lose."""
        arrival = transition.evictions[0].because
        counts = range(len(terms) + 1)
        return next(
            terms[:count]
            for count in counts
            if arrival and summary_message(self.summary, terms[:count]) == arrival.message
        )


def _with_seqs(
    memory_id: str, entries: Sequence[StayEntry], seqs: Collection[int]
) -> list[StayEntry]:
    wanted = set(seqs)
    covered = [entry for entry in entries if entry.seq in wanted]
    for seq in sorted(wanted - {entry.seq for entry in covered})[:1]:
        raise MessageNotFound(f"#{seq} is not in the memory of {memory_id!r}")
    return covered
