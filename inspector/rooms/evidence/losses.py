"""Finds the exact terms that compactions lost, by reading the ledgers of stored conversations.

A long conversation is read in parts; see `stretches`. The text of a term is not stored, but read
from a message that mentions the term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from django.db.models import Min, Q

from chatmemory.conf import fact_words
from chatmemory.formats import FORMATS
from chatmemory.kept import KeptRow
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.messages.texts import printable
from chatmemory.models import Memory, Stay, Step
from chatmemory.reading.history import messages_until
from chatmemory.recall.compactions import (
    Evidence,
    NeededTerm,
    NeededTerms,
    ReturnedBy,
    boundary_of,
    compaction_evidence,
    terms_of,
    why_left_out,
)
from chatmemory.recall.facts import LIMIT
from chatmemory.recall.lexicon import nameable
from chatmemory.recall.sessions import stored_session
from chatmemory.windows.compaction import appended_terms
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import DEFAULT_ESTIMATOR
from inspector.rooms.evidence.corpus import Corpus, digest_of, first_part, joined, packed
from inspector.rooms.evidence.messages import first_of_newest, injected_between, messages_of
from inspector.rooms.evidence.models import KeptCompactions
from inspector.rooms.evidence.stretches import first_behind, settled_part, settled_until

NEWEST_COMPACTIONS = 100  # compactions of a conversation for which losses are found
NAME_LENGTH = 80  # characters of the name of a model


class KeptTerm(NamedTuple):
    """The stored numbers of an exact term that was needed after a summary; see `NeededTerm`.
    Messages are given as seqs.

    - `used` is the message in which the assistant used the term again. `place` is the term's index
      among the terms of this message.
    - `said` is, of the messages that the summary replaced, the last user message with the term. If
      there is none, `said` is the last tool result with the term, else the last message with the
      term.
    - `came` is the first message, after the summary and before `used`, in which a user or a tool
      mentions the term. None if there is no such message. `by_user` is True for a user message.
    - `is_held` means that memory still had the term after the compaction, usually in the summary.
    - `is_told` means that a user or a tool mentioned the term before the assistant did.
    - `appended` is the term's index in the list of lost terms that could be appended to the
      summary. None for a held term.
    - `tail` is the number of tokens from the last message with the term to the end of the window
      before the compaction.
    - `digest` is a hash of the term, the same in all conversations (see `corpus`).
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
        """Whether a user or a tool gave the term to the assistant, and memory did not have it after
        the compaction.
        """
        return self.is_told and not self.is_held

    def needed_term(self, corpus: Corpus, term: str = "") -> NeededTerm:
        """Return the term for display. `term` is its text, or "" if the text is not known.

        The term is rare if a user or a tool gave it to the assistant, and few conversations of the
        corpus contain it.
        """
        back = ReturnedBy.UNKNOWN
        if self.came is not None:
            back = ReturnedBy.USER if self.by_user else ReturnedBy.TOOL
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


# Wide: an item of a stored row's JSON, with its values in the order of the fields.
class StoredEvidence(NamedTuple):
    """The stored numbers of what a compaction lost. Messages are given as seqs.

    - `step` is the step of the compaction, and `summary` the message with the summary.
    - `trigger` is the note of the step, such as "auto". `summarizer` is the author of the summary,
      such as `openai MODEL`. Both are "" if unknown.
    - `replaced` is the number of replaced messages. `first` and `last` are the first and last of
      these messages; None if no message was replaced.
    - `tokens_before` and `tokens_after` are the sizes of the prompts before and after the
      compaction, if an agent recorded these sizes. Otherwise, they are the sizes of memory. If an
      agent recorded only one of the two sizes, the other is None.
    - `is_opaque` means that the summary is encrypted.
    - `coverage` is how much of the replaced messages is recorded, as an estimated share of their
      tokens. None if unknown.
    - `dropped_count` is the number of lost terms: exact terms of the replaced messages that memory
      lacked after the compaction.
    - `dropped` has up to 50 lost terms, each as a pair: a message, and the term's index among the
      terms of this message. `dropped_tokens` is the size of a list of these terms in tokens.
    - `terms` are the needed terms, lost or held: exact terms that the assistant used again after
      the summary.
    - `boundary` is a key of the compaction, the same in the conversation and in all branches.
    - `later` is the number of messages after the summary that were searched.
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
    boundary: str
    later: int

    def needed_terms(self, corpus: Corpus) -> NeededTerms:
        """Return the terms that were needed after the summary, without their texts. `corpus`
        decides which terms are rare.
        """
        return NeededTerms(tuple(each.needed_term(corpus) for each in self.terms))

    @property
    def why_left_out(self) -> str | None:
        """The reason why the compaction cannot be measured; None if it can."""
        return why_left_out(self.coverage, is_opaque=self.is_opaque)

    @property
    def not_needed(self) -> int:
        """The number of terms that memory lacked after the compaction and that the assistant has
        not needed so far.
        """
        return self.dropped_count - sum(not each.is_held for each in self.terms)


def evidence_rows(values: Iterable[Sequence[JsonValue]]) -> list[StoredEvidence]:
    """Read compactions from the JSON of a stored row. Raises TypeError for other JSON."""
    kept = [StoredEvidence(*each) for each in values]
    for each in kept:
        if not all(isinstance(number, int) for number in (each.step, each.summary, each.replaced)):
            raise TypeError(
                "a stored compaction must have whole numbers for step, summary and replaced"
            )
    return [each._replace(terms=tuple(KeptTerm(*term) for term in each.terms)) for each in kept]


# Finding


class FoundCompactions(NamedTuple):
    """The compactions of a conversation, in order of their steps. `mentioned` is a text with the
    4-byte digests of all exact terms in the searched messages (see `corpus.packed`).
    """

    compactions: list[StoredEvidence]
    mentioned: str = ""

    def after(self, settled: FoundCompactions, first: int) -> FoundCompactions:
        """Return the newest 100 of the compactions in `settled` and in this object, in order.

        Only compactions whose summary comes before `first` are taken from `settled`. `first` is the
        seq of the first message that was searched for this object.
        """
        earlier = [each for each in settled.compactions if each.summary < first]
        newest = [*earlier, *self.compactions][-NEWEST_COMPACTIONS:]
        return FoundCompactions(newest, joined(settled.mentioned, self.mentioned))


def found_compactions(memory: Memory, before: KeptRow | None = None) -> FoundCompactions:
    """Find the newest 100 compactions of a conversation, with the terms that their summaries lost.

    Only the newest messages are read. `before` is the conversation's row of an earlier step, or
    None. Compactions that later messages cannot change may be copied from this row (see
    `stretches`).
    """
    first = first_behind(memory, settled_until(memory.last_seq))
    later = _found_between(memory, first, memory.last_seq)
    known = settled_part(memory, before, _compactions_in, _settled_compactions)
    return later if known is None else later.after(known, first)


def _compactions_in(kept: KeptRow) -> FoundCompactions:
    assert isinstance(kept, KeptCompactions)
    with kept.reading() as values:
        return FoundCompactions(evidence_rows(values), first_part(kept.mentioned))


def _settled_compactions(memory: Memory, settled: int) -> FoundCompactions:
    return _found_between(memory, first_of_newest(memory.pk, settled), settled)


def _found_between(memory: Memory, first: int, last: int) -> FoundCompactions:
    """Find the losses of the compactions whose summaries are among these messages."""
    compacting = Step.objects.filter(memory=memory, kind=Step.Kind.COMPACT)
    among = compacting.filter(seq__gte=first, seq__lte=last)
    newest = list(among.order_by("-n")[:NEWEST_COMPACTIONS])
    if not newest:
        return FoundCompactions([])
    injected = injected_between(memory, first, last)
    stays = Stay.objects.filter(memory=memory, seq__gte=first)
    since = stays.aggregate(since=Min("entered_step"))["since"] or 1
    steps = [each for each in newest[::-1] if each.n >= since and each.seq in injected]
    if not steps:
        return FoundCompactions([])
    rows = messages_until(memory.pk, last).filter(seq__gte=first)
    messages = {row.seq: read_message(row) for row in rows}
    session, seqs = _session(memory, messages, injected, steps)
    count = estimator_for(DEFAULT_ESTIMATOR).estimate_token_count_in_text
    found = compaction_evidence(session, words=fact_words())
    kept = [
        _kept(each, step, session, seqs, count(appended_terms(each.dropped[:LIMIT])))
        for each, step in zip(found, steps, strict=True)
    ]
    return FoundCompactions(kept, packed(map(digest_of, terms_of(session, fact_words()))))


def _session(
    memory: Memory,
    messages_read: Mapping[int, ChatMessage],
    injected: Mapping[int, ChatMessage],
    steps: Sequence[Step],
) -> tuple[Session, list[int]]:
    """Return a conversation with the compactions of these steps as a session, and the seqs of the
    session's messages.
    """
    compactions = list(_compactions(memory, steps))
    seqs = {seq for each in compactions for seq in (*each.covered, *each.window)}
    earlier = messages_of(memory.pk, seqs - messages_read.keys() - injected.keys())
    messages = dict(sorted({**messages_read, **earlier, **injected}.items()))
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
    found: Evidence, step: Step, session: Session, seqs: Sequence[int], tokens: int
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
            by_user=each.back is ReturnedBy.USER,
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
        step=step.n,
        summary=seqs[one.summary],
        trigger=one.trigger or "",
        summarizer=_summarizer(session, one, step.by_client),
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
        boundary=boundary_of(session, one),
        later=len(session.messages) - one.summary - 1,
    )


def _summarizer(session: Session, one: Compaction, by_client: bool) -> str:
    """Return the author of a summary: its format and its model, such as `openai MODEL`; "" if
    neither is known.

    With `by_client`, an agent sent the summary. Then the attributes of the replaced messages may
    tell both.
    """
    known = ""
    for position in (one.summary, *reversed(one.covered if by_client else ())):
        attributes = getattr(session.messages[position], "attributes", {})
        for name, about in attributes.items():
            if name in FORMATS and isinstance(about, Mapping):
                known = known or name
                if isinstance(model := about.get("model"), str):
                    return f"{name} {printable(model)[:NAME_LENGTH]}"
    return known
