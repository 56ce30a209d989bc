"""Reads the stored compactions of conversations: which exact terms their summaries lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from chatmemory.columns import ColumnValues
from chatmemory.conf import fact_words
from chatmemory.exceptions import CorruptRow
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.compactions import (
    CompactionId,
    Level,
    NeededTerm,
    NeededTerms,
    each_once,
)
from chatmemory.recall.lexicon import nameable
from chatmemory.snapshots import one_snapshot
from inspector.rooms.evidence.corpus import Corpus, corpus_now, roots_of, rows_with_sources
from inspector.rooms.evidence.losses import (
    KeptTerm,
    StoredEvidence,
    evidence_rows,
    found_compactions,
)
from inspector.rooms.evidence.messages import messages_of
from inspector.rooms.evidence.models import KeptCompactions

LOST_LISTED = 100
SUMMED = 2_000  # the most conversations whose compactions are summed up
LOSS_RULES = 6  # raise it with each change of the rules by which losses are found


class CompactionKeeper(Keeper):
    """Derives and stores which terms the newest 100 compactions of each conversation lost."""

    model = KeptCompactions

    def version(self) -> str:
        return version_of(LOSS_RULES, fact_words(), StoredEvidence._fields, KeptTerm._fields)

    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        found = found_compactions(memory, before)
        measured = [each for each in found.compactions if not each.why_left_out]
        lost = {term.digest for each in measured for term in each.terms if term.is_lost}
        return {
            "content": json.dumps(found.compactions),
            "compacted": len(found.compactions),
            "terms_lost": sum(term.is_lost for each in measured for term in each.terms),
            "lost": json.dumps(sorted(lost)),
            "mentioned": found.mentioned if found.compactions else "",
        }


# Reading kept rows


@dataclass(frozen=True)
class CompactionsUntil:
    """The compactions of a conversation up to `step`, in order. `is_current` means that the
    conversation has no later step.
    """

    memory_id: str
    step: int
    compactions: Sequence[StoredEvidence]
    is_current: bool = True


def compactions_in(memory: Memory, kept: KeptRow | None) -> CompactionsUntil:
    """Return the compactions in the stored row `kept`. If `kept` is None, the result has no
    compactions. Raises CorruptRow.
    """
    if kept is None:
        return CompactionsUntil(memory.pk, 0, (), is_current=not memory.last_step)
    with kept.reading() as values:
        is_current = kept.step == memory.last_step
        return CompactionsUntil(memory.pk, kept.step, evidence_rows(values), is_current)


@one_snapshot()
def compactions_now(memory_id: str, most: int | None = None) -> CompactionsUntil:
    """Return the compactions of a conversation up to its newest step, with the terms that each
    summary lost.

    If the stored compactions are not up to date, they are computed, but not stored. For a
    conversation with more than `most` messages, nothing is computed. The result then has only
    stored compactions, possibly none. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = CompactionsUntil(memory_id, 0, (), is_current=False)
    with suppress(CorruptRow):
        known = compactions_in(memory, CompactionKeeper().row(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return CompactionsUntil(memory_id, memory.last_step, found_compactions(memory).compactions)


def shown_compactions(known: CompactionsUntil, latest: int) -> list[ShownEvidence]:
    """Return the last `latest` compactions of `known`, in order, with the texts of the lost terms.
    If `known` has fewer compactions, all are returned.
    """
    memory = find_memory(known.memory_id)
    return [
        shown_evidence(memory, each, known.step, lists_dropped=False)
        for each in known.compactions[-latest:]
    ]


@one_snapshot()
def evidence_of(memory_id: str, step: int) -> ShownEvidence | None:
    """Return what a step's compaction lost. None if the step has no compaction, or if the losses
    are not known yet.

    Raises MemoryNotFound, and CorruptRow for an altered row.
    """
    return evidence_at(find_memory(memory_id), step)


def evidence_at(memory: Memory, step: int, lists_dropped: bool = False) -> ShownEvidence | None:
    """Return what a step's compaction lost. None if the step has no compaction, or if its losses
    are not known yet.

    With `lists_dropped`, the result also lists up to 50 exact terms that memory lost, including
    terms that the assistant never used again. Raises CorruptRow for an altered row.
    """
    kept = CompactionKeeper().row(memory)
    if kept is None:
        return None
    with kept.reading() as values:
        rows = (row for row in evidence_rows(values) if row.step == step)
        return next((shown_evidence(memory, row, kept.step, lists_dropped) for row in rows), None)


@dataclass(frozen=True)
class ShownEvidence:
    """What a compaction lost, for display. A term is needed if the assistant used the term again
    after the summary.

    - `evidence` has the stored numbers of the compaction.
    - `terms` are all needed terms, with empty texts.
    - `listed` are the first 100 needed terms that memory lost, with their texts.
    - `level` is the group of terms that pages count first, such as rare terms (see
      `Corpus.headline`).
    - `until` is the last step that was searched for uses of the terms. `is_current` means that the
      conversation has no later step.
    - `tools` has the name of the tool for each tool result that brought a term back, by seq.
    - `dropped` has the texts of up to 50 terms that memory lost, needed or not. Empty unless the
      caller asks for these texts.
    """

    evidence: StoredEvidence
    terms: NeededTerms
    level: Level
    until: int
    is_current: bool
    listed: Sequence[NeededTerm]
    tools: Mapping[int, str]
    dropped: Sequence[str] = ()


def shown_evidence(
    memory: Memory, kept: StoredEvidence, until: int, lists_dropped: bool
) -> ShownEvidence:
    """Return what a compaction lost, with the texts of the lost terms. The texts are read from the
    messages.

    `until` is the last step that was searched for uses of the terms. With `lists_dropped`, the
    result also lists up to 50 exact terms that memory lost, including terms that the assistant
    never used again.
    """
    corpus = corpus_now()
    lost = [each for each in kept.terms if not each.is_held][:LOST_LISTED]
    dropped = kept.dropped if lists_dropped else ()
    seqs = {each.used for each in lost} | {each.came or each.used for each in lost}
    messages = messages_of(memory.pk, seqs | {seq for seq, _ in dropped})
    facts = {seq: nameable(message, fact_words()) for seq, message in messages.items()}
    return ShownEvidence(
        kept,
        kept.needed_terms(corpus),
        corpus.headline,
        until,
        until == memory.last_step,
        listed=[each.needed_term(corpus, facts[each.used][each.place]) for each in lost],
        tools={
            seq: name
            for seq, message in messages.items()
            if (name := getattr(message, "tool_name", None))
        },
        dropped=[facts[seq][place] for seq, place in dropped],
    )


# Compactions of many conversations


@dataclass(frozen=True)
class CompactionOf:
    """What a compaction lost, as stored, with the ID of its conversation."""

    memory_id: str
    evidence: StoredEvidence


@dataclass(frozen=True)
class Compactions:
    """The stored compactions of the conversations that match a filter.

    - `measured` are the compactions whose losses can be measured. `left_out` is the number of
      compactions whose losses cannot be measured.
    - `matching` is the number of matching conversations with a stored compaction.
    - `conversations` is the number of these conversations that were read: at most the 2,000 that
      changed last.
    - `corpus` decides which terms are rare.
    - `unreadable` has a sentence for each stored row that cannot be read.
    """

    measured: Sequence[CompactionOf]
    corpus: Corpus
    left_out: int
    matching: int
    conversations: int
    unreadable: Sequence[str] = ()


def fleet_compactions(which: MemoryFilter) -> Compactions:
    """Return the stored compactions of the conversations that match a filter. Copies of a
    compaction in branches are not counted again.
    """
    version = CompactionKeeper().version()
    chosen = KeptCompactions.objects.filter(
        memory__in=which.rows(), compacted__gt=0, version=version
    )
    rows = list(rows_with_sources(chosen)[:SUMMED])
    found: list[CompactionOf] = []
    unreadable: list[str] = []
    for row in rows:
        try:
            with row.reading() as values:
                found += [CompactionOf(row.pk, each) for each in evidence_rows(values)]
        except CorruptRow as error:
            unreadable.append(str(error))
    roots = roots_of(rows)
    found = each_once(
        sorted(found, key=lambda each: each.memory_id != roots[each.memory_id]),
        lambda each: CompactionId(roots[each.memory_id], each.evidence.boundary),
        lambda each: (len(each.evidence.terms), each.evidence.later),
    )
    measured = [each for each in found if not each.evidence.why_left_out]
    matching = len(rows) if len(rows) < SUMMED else chosen.count()
    left_out = len(found) - len(measured)
    return Compactions(measured, corpus_now(), left_out, matching, len(rows), unreadable)
