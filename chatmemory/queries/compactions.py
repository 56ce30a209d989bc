"""What the compactions of a stored conversation lost: found in its ledger, kept as numbers.

The term of a kept row is read again from a message that mentions it. And what summaries stand for:
the messages that left when one took their place, and their terms.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from django.db.models import Min, Q

from chatmemory import database
from chatmemory.conf import fact_words
from chatmemory.core.compaction import appended_terms
from chatmemory.core.estimators import estimator_for
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import DEFAULT_ESTIMATOR
from chatmemory.core.recall.compactions import (
    LIMIT,
    CameBack,
    Evidence,
    Level,
    NeededTerm,
    NeededTerms,
    compaction_evidence,
    terms_of,
    why_left_out,
)
from chatmemory.core.recall.facts import facts_of, said_texts
from chatmemory.core.recall.held import Terms
from chatmemory.core.recall.lexicon import nameable
from chatmemory.core.sessions import (
    Compaction,
    Session,
    stored_session,
)
from chatmemory.core.texts import printable
from chatmemory.formats import FORMATS
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptCompactions, KeptRow
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.corpus import Corpus, corpus_now, digest_of, packed
from chatmemory.queries.history import message_row, newest_said
from chatmemory.queries.searching import MemoryFilter

NEWEST_COMPACTIONS = 100  # of a conversation, of which it is found what they lost
LOST_LISTED = 100
SUMMED = 2_000  # conversations whose compactions are summed up
RULES = 2  # raise it with each change of what a loss is
NAME_LENGTH = 80  # of a model
GENERATIONS = 4  # of summaries that are followed one by one


class KeptTerm(NamedTuple):
    """The numbers that are kept of a needed term; see `NeededTerm`. It is that at a `place` among
    what the message that used it could name, in order. By its `digest` it is looked for in others.
    """

    used: int
    place: int
    said: int
    came: int | None
    by_user: bool
    is_held: bool
    is_told: bool
    appended: int | None
    tail: int
    digest: int

    @property
    def is_lost(self) -> bool:
        """Whether it was lost, of those that the assistant had been told."""
        return self.is_told and not self.is_held

    def needed_term(self, corpus: Corpus, term: str = "") -> NeededTerm:
        """Return the term, whose words are not kept, as the corpus tells whether it is rare."""
        back = CameBack.UNKNOWN
        if self.came is not None:
            back = CameBack.USER if self.by_user else CameBack.TOOL
        return NeededTerm(
            term,
            term,
            self.said,
            self.used,
            back,
            self.came,
            is_held=self.is_held,
            is_told=self.is_told,
            is_rare=self.is_told and corpus.has_few(self.digest),
            place=self.appended,
            tail=self.tail,
        )


class StoredEvidence(NamedTuple):
    """What the compaction of a step lost, as the numbers that are kept; its messages are seqs.

    `trigger` is the note of the step, and `summarizer` who wrote the summary, as far as known. It
    replaced so many messages, the `first` to the `last`. Of the terms that the summary does not
    hold there are `dropped_count`; the best 50 have `dropped_tokens` together, and `dropped` are
    the messages that mention them and the places of the terms among theirs.
    """

    step: int
    summary: int
    trigger: str
    summarizer: str
    replaced: int
    first: int | None
    last: int | None
    tokens_before: int | None
    tokens_after: int | None
    is_opaque: bool
    coverage: float | None
    dropped_count: int
    dropped_tokens: int
    dropped: Sequence[Sequence[int]]
    terms: Sequence[KeptTerm]

    def needed_terms(self, corpus: Corpus) -> NeededTerms:
        """Return the needed terms, without their words."""
        return NeededTerms(tuple(each.needed_term(corpus) for each in self.terms))

    @property
    def why_left_out(self) -> str | None:
        """Why the compaction cannot be measured; None if it can."""
        return why_left_out(self.coverage, is_opaque=self.is_opaque)

    @property
    def not_needed(self) -> int:
        """How many terms the summary does not hold that nobody needed so far."""
        return self.dropped_count - sum(not each.is_held for each in self.terms)


# Keeping it


class CompactionKeeper(Keeper):
    """Keeps what the newest 100 compactions of each conversation lost."""

    model = KeptCompactions

    def version(self) -> str:
        return version_of(RULES, fact_words(), StoredEvidence._fields, KeptTerm._fields)

    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        found, terms = found_compactions(memory)
        measured = [each for each in found if not each.why_left_out]
        lost = {term.digest for each in measured for term in each.terms if term.is_lost}
        return {
            "content": json.dumps(found),
            "compacted": len(found),
            "terms_lost": sum(term.is_lost for each in measured for term in each.terms),
            "lost": json.dumps(sorted(lost)),
            "mentioned": packed(map(digest_of, terms)) if found else "",
        }


def found_compactions(memory: Memory) -> tuple[list[StoredEvidence], Collection[str]]:
    """Return what the newest 100 compactions lost, by step, and the terms of the conversation:
    among the newest 10,000 messages, or 4 million characters.
    """
    compacting = Step.objects.filter(memory=memory, kind=Step.Kind.COMPACT)
    newest = list(compacting.order_by("-n")[:NEWEST_COMPACTIONS])
    if not newest:
        return [], ()
    messages, history = newest_said(memory.pk)
    first = min(history.numbers, default=1)
    injected = injected_since(memory, first)
    stays = Stay.objects.filter(memory=memory, seq__gte=first)
    since = stays.aggregate(since=Min("entered_step"))["since"] or 1
    steps = [each for each in newest[::-1] if each.n >= since and each.seq in injected]
    if not steps:
        return [], ()
    said = dict(zip(history.numbers, messages, strict=True))
    session, seqs = _session(memory, said, injected, steps)
    count = estimator_for(DEFAULT_ESTIMATOR).estimate_token_count_in_text
    found = compaction_evidence(session, words=fact_words())
    kept = [
        _kept(each, step.n, session, seqs, count(appended_terms(each.dropped[:LIMIT])))
        for each, step in zip(found, steps, strict=True)
    ]
    return kept, terms_of(session, fact_words())


def injected_since(memory: Memory, first: int) -> dict[int, ChatMessage]:
    """Return the messages that were put into the window, such as summaries, from a seq on."""
    rows = Message.objects.filter(memory=memory, seq__gte=first, origin=Message.Origin.SYNTHETIC)
    return {row.seq: read_message(row) for row in rows}


def _session(
    memory: Memory,
    said: Mapping[int, ChatMessage],
    injected: Mapping[int, ChatMessage],
    steps: Sequence[Step],
) -> tuple[Session, list[int]]:
    """Return the session of a conversation with the compactions of these steps, and its seqs."""
    compactions = list(_compactions(memory, steps))
    seen = {seq for each in compactions for seq in (*each.covered, *each.window)}
    earlier = messages_of(memory.pk, seen - said.keys() - injected.keys())
    messages = dict(sorted({**said, **earlier, **injected}.items()))
    return stored_session(messages, injected, compactions), list(messages)


def _compactions(memory: Memory, steps: Sequence[Step]) -> Iterator[Compaction]:
    first, last = steps[0].n, steps[-1].n
    lasting = Q(left_step=None) | Q(left_step__gte=first)
    stays = Stay.objects.filter(lasting, memory=memory, entered_step__lte=last).order_by("rank")
    columns = ("seq", "entered_step", "left_step", "reason")
    rows = list(stays.values_list(*columns))
    for step in steps:
        covered = [seq for seq, _, left, why in rows if left == step.n and why == Reason.SUMMARIZED]
        window = [
            seq
            for seq, entered, left, _ in rows
            if entered <= step.n and (left is None or left > step.n)
        ]
        yield Compaction(
            step.seq or 0,
            tuple(covered),
            tuple(window),
            step.note or None,
            step.tokens_before,
            step.tokens_after,
        )


def _kept(
    found: Evidence, step: int, session: Session, seqs: Sequence[int], tokens: int
) -> StoredEvidence:
    @cache
    def places(position: int) -> dict[str, int]:
        names = nameable(session.messages[position], fact_words())
        return {name: place for place, name in enumerate(names)}

    one = found.compaction
    covered = [seqs[each] for each in one.covered]
    terms = [
        KeptTerm(
            used=seqs[each.used],
            place=places(each.used)[each.term],
            said=seqs[each.said],
            came=None if each.came is None else seqs[each.came],
            by_user=each.back is CameBack.USER,
            is_held=each.is_held,
            is_told=each.is_told,
            appended=each.place,
            tail=each.tail,
            digest=digest_of(each.name),
        )
        for each in found.terms
    ]
    dropped = zip(found.mentions[:LIMIT], found.dropped[:LIMIT], strict=True)
    return StoredEvidence(
        step=step,
        summary=seqs[one.summary],
        trigger=one.trigger or "",
        summarizer=_summarizer(session, one),
        replaced=len(covered),
        first=min(covered, default=None),
        last=max(covered, default=None),
        tokens_before=one.tokens_before,
        tokens_after=one.tokens_after,
        is_opaque=one.is_opaque,
        coverage=found.coverage,
        dropped_count=len(found.dropped),
        dropped_tokens=tokens,
        dropped=[(seqs[position], places(position)[term]) for position, term in dropped],
        terms=terms,
    )


def _summarizer(session: Session, one: Compaction) -> str:
    """Return the format that has attributes of the messages, with the model of the last answer
    before the summary; empty if neither is known.
    """
    known = ""
    for position in reversed((*one.covered, one.summary)):
        attributes = getattr(session.messages[position], "attributes", {})
        for name, about in attributes.items():
            if name in FORMATS and isinstance(about, Mapping):
                known = known or name
                if isinstance(model := about.get("model"), str):
                    return f"{name} {printable(model)[:NAME_LENGTH]}"
    return known


# Reading what is kept


@dataclass(frozen=True)
class CompactionsUntil:
    """What compactions lost up to a step, by step; `is_current` if that is the newest step."""

    memory_id: str
    step: int
    compactions: Sequence[StoredEvidence]
    is_current: bool = True


def compactions_in(memory: Memory, kept: KeptRow | None) -> CompactionsUntil:
    """Return what a kept row tells. Raises CorruptRow."""
    if kept is None:
        return CompactionsUntil(memory.pk, 0, (), is_current=not memory.last_step)
    with kept.reading() as values:
        is_current = kept.step == memory.last_step
        return CompactionsUntil(memory.pk, kept.step, _rows(values), is_current)


@one_snapshot()
def compactions_now(memory_id: str, most: int | None = None) -> CompactionsUntil:
    """Return what compactions lost up to the newest step. What is not kept yet is computed, and not
    stored; with `most`, only of a conversation of so many messages. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = CompactionsUntil(memory_id, 0, (), is_current=False)
    with suppress(CorruptRow):
        known = compactions_in(memory, CompactionKeeper().row(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return CompactionsUntil(memory_id, memory.last_step, found_compactions(memory)[0])


def shown_compactions(known: CompactionsUntil, latest: int) -> list[ShownEvidence]:
    """Return what the latest compactions lost, with the words of their messages, in order."""
    memory = find_memory(known.memory_id)
    return [
        shown_evidence(memory, each, known.step, lists_dropped=False)
        for each in known.compactions[-latest:]
    ]


def _rows(values: Iterable[Sequence[Any]]) -> list[StoredEvidence]:
    """Return the compactions of a row's JSON. Raises TypeError for other JSON."""
    kept = [StoredEvidence(*each) for each in values]
    for each in kept:
        if not all(isinstance(number, int) for number in (each.step, each.summary, each.replaced)):
            raise TypeError("steps and messages are numbers")
    return [each._replace(terms=tuple(KeptTerm(*term) for term in each.terms)) for each in kept]


@one_snapshot()
def evidence_of(memory_id: str, step: int) -> ShownEvidence | None:
    """Return what the compaction of a step lost; None while it is not known, and of other steps.

    Raises MemoryNotFound, and CorruptRow for an altered row.
    """
    return evidence_at(find_memory(memory_id), step)


def evidence_at(memory: Memory, step: int, lists_dropped: bool = False) -> ShownEvidence | None:
    """Return what the compaction of a step lost, of a conversation whose row was read."""
    kept = CompactionKeeper().row(memory)
    if kept is None:
        return None
    with kept.reading() as values:
        rows = (row for row in _rows(values) if row.step == step)
        return next((shown_evidence(memory, row, kept.step, lists_dropped) for row in rows), None)


@dataclass(frozen=True)
class ShownEvidence:
    """What a compaction lost, as far as the conversation was read, which is up to step `until`.

    `terms` are the needed ones, of which those of the `level` are told first. Of the lost terms,
    the first 100 are `listed`, and `tools` are the names of those that brought some back, by seq.
    `dropped` are the best 50 terms that the summary does not hold, if they were asked for.
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
    """Return what a compaction lost, with the words of its messages."""
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


def messages_of(memory_id: str, seqs: Collection[int]) -> dict[int, ChatMessage]:
    """Return some messages of a conversation by seq."""
    if not seqs:
        return {}
    rows = Message.objects.filter(database.in_list("seq", seqs), memory_id=memory_id)
    return {row.seq: read_message(row) for row in rows}


# Of many conversations


@dataclass(frozen=True)
class CompactionOf:
    """What a compaction of a conversation lost."""

    memory_id: str
    evidence: StoredEvidence


@dataclass(frozen=True)
class Compactions:
    """The compactions of the conversations that a filter finds, as far as they were found.

    `left_out` of them cannot be measured. Of `matching` conversations with a compaction, the newest
    2,000 are read. `unreadable` has a sentence for each kept row that cannot be read.
    """

    measured: Sequence[CompactionOf]
    corpus: Corpus
    left_out: int
    matching: int
    conversations: int
    unreadable: Sequence[str] = ()


def fleet_compactions(which: MemoryFilter) -> Compactions:
    """Return what is kept of the compactions of conversations, by one query and a count."""
    version = CompactionKeeper().version()
    chosen = KeptCompactions.objects.filter(
        memory__in=which.rows(), compacted__gt=0, version=version
    )
    rows = list(chosen.order_by("-memory__updated_at", "memory_id")[:SUMMED])
    found: list[CompactionOf] = []
    unreadable: list[str] = []
    for row in rows:
        try:
            with row.reading() as values:
                found += [CompactionOf(row.pk, each) for each in _rows(values)]
        except CorruptRow as error:
            unreadable.append(str(error))
    measured = [each for each in found if not each.evidence.why_left_out]
    matching = len(rows) if len(rows) < SUMMED else chosen.count()
    left_out = len(found) - len(measured)
    return Compactions(measured, corpus_now(), left_out, matching, len(rows), unreadable)


# What summaries stand for


class StandsFor(NamedTuple):
    """What a summary stands for, through earlier summaries too.

    `number` messages, with these `tokens`, lie in the `runs` of seqs, and but for summaries nothing
    else does. `seqs` are those messages, of the summary that is opened alone.
    """

    runs: tuple[range, ...]
    number: int
    tokens: int
    seqs: tuple[int, ...] = ()


def stands_for(
    memory_id: str, summaries: Collection[int], opened: int | None = None
) -> dict[int, StandsFor]:
    """Return what messages stand for by seq. Those that are no summary are left out.

    A summary that another one covered is followed to what was said, by a few queries: those of the
    first generations of summaries, then one of all that are left.
    """
    covered: dict[int, dict[int, int]] = {}
    asked = set(summaries)
    for generation in range(GENERATIONS + 1):
        if not asked:
            break
        found = _covered(memory_id, asked if generation < GENERATIONS else None)
        covered |= found
        asked = {seq for by_seq in found.values() for seq in by_seq} - covered.keys()
    return {seq: _stands_for(covered, seq, seq == opened) for seq in summaries if seq in covered}


def _stands_for(
    covered: Mapping[int, Mapping[int, int]], summary: int, is_opened: bool
) -> StandsFor:
    reached = _reached({summary}, covered)
    said = said_of(covered, summary)
    runs: list[range] = []
    for seq in sorted(said.keys() | reached - {summary}):
        if runs and runs[-1].stop == seq:
            runs[-1] = range(runs[-1].start, seq + 1)
        elif seq in said:
            runs.append(range(seq, seq + 1))
    seqs = tuple(sorted(said)) if is_opened else ()
    return StandsFor(tuple(runs), len(said), sum(said.values()), seqs)


def _covered(memory_id: str, seqs: Collection[int] | None) -> dict[int, dict[int, int]]:
    """Return the tokens of what some summaries covered themselves, by seq; None asks for all."""
    steps = Step.objects.filter(memory_id=memory_id, kind=Step.Kind.COMPACT)
    stays = Stay.objects.filter(memory_id=memory_id, reason=Reason.SUMMARIZED)
    if seqs is not None:
        steps = steps.filter(database.in_list("seq", list(seqs)))
    by_step = {step.n: step.seq or 0 for step in steps.only("n", "seq")}
    if seqs is not None:
        stays = stays.filter(database.in_list("left_step", list(by_step)))
    covered: defaultdict[int, dict[int, int]] = defaultdict(dict)
    rows = stays.values_list("left_step", "seq", "tokens") if by_step else ()
    for left_step, seq, tokens in rows:
        covered[by_step[left_step or 0]][seq] = tokens
    return dict(covered)


def said_of(covered: Mapping[int, Mapping[int, int]], summary: int) -> dict[int, int]:
    """Return what a summary stands for, following earlier summaries, with the tokens."""
    return {
        seq: tokens
        for each in _reached({summary}, covered)
        for seq, tokens in covered.get(each, {}).items()
        if seq not in covered
    }


def _reached(starts: Iterable[int], ways: Mapping[int, Iterable[int]]) -> set[int]:
    """Return the starts and all to which ways lead from them, however long."""
    found, waiting = set(starts), list(starts)
    while waiting:
        new = set(ways.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def summaries_holding(memory_id: str, seq: int) -> list[int]:
    """Return the summaries that stand for a message and hold one of its exact terms, by seq.

    There are none of a redacted message, whose terms are gone. Raises MessageNotFound,
    UnstorableText.
    """
    row = message_row(memory_id, seq)
    return [summary.seq for summary in holding_terms(row, standing_for(row.memory_id, row.seq))]


def standing_for(memory_id: str, seq: int) -> list[Message]:
    """Return the summaries that stand for a message, also through earlier ones, by seq.

    One query tells that no summary ever took its place.
    """
    found: set[int] = set()
    asked = {seq}
    for _ in range(GENERATIONS):
        asked = _covering(memory_id, asked) - found
        found |= asked
        if not asked:
            break
    else:
        covering: defaultdict[int, list[int]] = defaultdict(list)
        for summary, by_seq in _covered(memory_id, None).items():
            for each in by_seq:
                covering[each].append(summary)
        found |= _reached(asked, covering)
    rows = Message.objects.filter(database.in_list("seq", found), memory_id=memory_id)
    return list(rows.order_by("seq")) if found else []


def _covering(memory_id: str, seqs: Collection[int]) -> set[int]:
    """Return the summaries that took the place of messages themselves."""
    stays = Stay.objects.filter(
        database.in_list("seq", seqs), memory_id=memory_id, reason=Reason.SUMMARIZED
    )
    left = {stay.left_step or 0 for stay in stays.only("left_step")}
    steps = Step.objects.filter(
        database.in_list("n", left), memory_id=memory_id, kind=Step.Kind.COMPACT
    )
    return {step.seq or 0 for step in steps.only("seq")} if left else set()


def holding_terms(row: Message, summaries: Iterable[Message]) -> list[Message]:
    """Return those of some summaries whose text holds an exact term of a message.

    There are none of a redacted message, and a redacted summary holds none.
    """
    if row.redacted_step is not None:
        return []
    readable = [summary for summary in summaries if summary.redacted_step is None]
    terms = Terms(facts_of(read_message(row), fact_words()) if readable else ())
    return [
        summary
        for summary in readable
        if any(map(terms.held_by, said_texts(read_message(summary))))
    ]
