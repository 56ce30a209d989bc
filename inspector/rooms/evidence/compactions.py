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
    """Return the compactions of a stored row. `kept` is None if no row is stored; then there are
    none. Raises CorruptRow.
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

    If the stored row is outdated, the compactions are computed now, and are not stored. A
    conversation with more than `most` messages is not computed: then the result is that of the
    stored row. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = CompactionsUntil(memory_id, 0, (), is_current=False)
    with suppress(CorruptRow):
        known = compactions_in(memory, CompactionKeeper().row(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return CompactionsUntil(memory_id, memory.last_step, found_compactions(memory).compactions)


def shown_compactions(known: CompactionsUntil, latest: int) -> list[ShownEvidence]:
    """Return the last compactions in order, at most `latest`, with the texts of the lost terms."""
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
    """Return what a step's compaction lost. None if the step has no compaction, or if the losses
    are not known yet.

    With `lists_dropped`, the result also has up to 50 terms that the summary lacks, even if nobody
    needed them: the terms that the replaced messages mention most.
    """
    kept = CompactionKeeper().row(memory)
    if kept is None:
        return None
    with kept.reading() as values:
        rows = (row for row in evidence_rows(values) if row.step == step)
        return next((shown_evidence(memory, row, kept.step, lists_dropped) for row in rows), None)


@dataclass(frozen=True)
class ShownEvidence:
    """What a compaction lost, for display.

    - `terms` are the exact terms that were needed after the summary. `listed` are the first 100 of
      them that the summary lost.
    - `level` is the group of terms that pages count first (see `Corpus.headline`).
    - `until` is the step up to which messages were read; `is_current` means that this is the newest
      step.
    - `tools` maps the seq of each tool result that brought a term back to the name of its tool.
    - `dropped` has up to 50 terms that the summary lacks, needed or not. It is empty unless the
      caller asks for these terms.
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

    - `matching` is the number of matching conversations with a compaction. Only the 2,000 of them
      that changed last are read: `conversations` is the number that was read.
    - `measured` are the compactions in these conversations. `left_out` is the number of compactions
      that cannot be measured, and are not among them.
    - `corpus` has the conversations by which rare terms are recognized.
    - `unreadable` has a sentence for each row that cannot be read.
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
