"""Incidents of stored conversations: found in the ledger as it was, and kept as numbers.

The fact of a kept incident is read again from its message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, F, OuterRef, Q

from chatmemory.conf import fact_words
from chatmemory.core.eviction import REASONS
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.loads import Keeping
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.recall.facts import History, facts_of
from chatmemory.core.recall.incidents import (
    Incident,
    IncidentKind,
    MemoryTime,
    StepMessage,
    incidents_of,
    with_limits,
)
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.texts import readable_text
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import LIVED, FoundIncidents, Memory, Message, Stay, Step
from chatmemory.queries.compactions import (
    CompactionOf,
    Compactions,
    KeptTerm,
    ShownEvidence,
    StoredEvidence,
    kept_compactions,
    messages_of,
    read_kept,
    shown_evidence,
    sorted_facts,
)
from chatmemory.queries.history import estimator_of, said_with_history
from chatmemory.queries.phrase import change_at
from chatmemory.queries.rows import MessageDetail, StepDetail
from chatmemory.queries.searching import MemoryFilter, any_of

# That incidents are looked for among: so many messages, or as many as have so many characters.
NEWEST_MESSAGES, NEWEST_CHARACTERS = 10_000, 4_000_000


@dataclass(frozen=True)
class IncidentsUntil:
    """The incidents up to a step, in order, and what compactions lost; `is_current` if that is the
    newest step.
    """

    step: int
    incidents: Sequence[Incident]
    compactions: Sequence[StoredEvidence] = ()
    is_current: bool = True


class KeptIncident(NamedTuple):
    """The numbers that are kept of an incident; see `Incident`."""

    kind: str
    place: int
    said: int
    last: int
    left_step: int
    cause: str
    asked: int | None
    again: int
    step: int
    tokens: int | None
    limit: int | None
    tried_every: int | None


@one_snapshot()
def incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation that were found last. Raises MemoryNotFound."""
    memory = find_memory(memory_id)
    kept = _kept(memory)
    if kept is None:
        return IncidentsUntil(0, (), is_current=not memory.last_step)
    found = _with_facts(memory, map(KeptIncident._make, kept.rows))
    lost = read_kept(kept.compactions)
    return IncidentsUntil(kept.step, found, lost, is_current=kept.step == memory.last_step)


@one_snapshot()
def incidents_now(memory_id: str) -> IncidentsUntil:
    """Return the incidents up to the newest step. What is not kept yet is computed, and not stored.

    Raises MemoryNotFound.
    """
    known = incidents(memory_id)
    return known if known.is_current else computed_incidents(memory_id)


@one_snapshot()
def compactions_now(memory_id: str, latest: int) -> tuple[int, list[ShownEvidence]]:
    """Return how many compactions there are, and what the latest ones lost up to the newest step,
    in order. Nothing is stored. Raises MemoryNotFound.
    """
    memory, found = find_memory(memory_id), incidents_now(memory_id)
    rows = found.compactions[-latest:]
    shown = [shown_evidence(memory, each, found.step, lists_dropped=False) for each in rows]
    return len(found.compactions), shown


def _with_facts(memory: Memory, rows: Iterable[KeptIncident]) -> list[Incident]:
    kept = list(rows)
    messages = messages_of(memory.pk, {row.again for row in kept})
    facts = {seq: sorted_facts(message) for seq, message in messages.items()}
    return [_incident(row, facts[row.again]) for row in kept]


def kept_row(found: Incident) -> KeptIncident:
    """Return the numbers of an incident, of which `incidents` makes it again."""
    keeping = found.keeping
    whole = (found.kind, found.place, found.said, found.last, found.left_step, found.cause)
    again = (found.asked, found.again, found.step, found.tokens)
    limits = (keeping.limit, keeping.tried_every) if keeping else (None, None)
    return KeptIncident(*whole, *again, *limits)


def _incident(row: KeptIncident, facts: Sequence[str]) -> Incident:
    """Return the incident of a row, given the facts of the message in which it happened."""
    kind, place, said, last, left_step, cause, asked, again, step, tokens, limit, tried_every = row
    return Incident(
        IncidentKind(kind),
        facts[place],
        place,
        said,
        last,
        left_step,
        REASONS[cause],
        asked,
        again,
        step,
        tokens,
        Keeping(limit, tried_every) if tried_every else None,
    )


def words_digest() -> str:
    """Return a digest of the words that are facts by the settings, and of what is kept."""
    known = repr((fact_words(), KeptIncident._fields, StoredEvidence._fields, KeptTerm._fields))
    return hashlib.sha256(known.encode()).hexdigest()[:32]


# What a page of a conversation shows of them

LISTED = 100  # uses without a recorded mention
LOOKED_AT = 1_000  # incidents whose facts are read at a time
SUMMED = 2_000  # conversations whose compactions are summed up


@dataclass(frozen=True)
class ShownIncident:
    """An incident with what a page says of it: number `number` of `count`, the newest first.

    At its own step it is number `number_then`. `left` is the change by which its last mention left
    memory, and `policy` the one in force at its step. `texts` are those of its messages, as people
    read them, and `tool` names what was called again. `said` arrived at `said_step`, and
    `said_before` messages had been said before `again`.
    """

    incident: Incident
    number: int
    number_then: int
    count: int
    left: ChangeResult
    policy: Policy | None
    texts: Mapping[int, str]
    tool: str
    said_step: int
    said_before: int


@dataclass(frozen=True)
class IncidentsAt:
    """The incidents up to a step, as far as they were found, which is up to step `until`.

    `shown` is the one of a user or a tool that was asked for. `used` is the number of uses without
    a recorded mention, and `listed` are the newest of them, if they were asked for. `are_imported`
    tells that those came with an import, of which nobody knows what memory held. `evidence` is what
    the step lost, if it compacted.
    """

    until: int
    is_current: bool
    shown: ShownIncident | None
    used: int
    listed: Sequence[Incident]
    are_imported: bool
    evidence: ShownEvidence | None = None


def incidents_at(
    memory: Memory,
    at: int,
    number: int,
    detail: StepDetail | None,
    *,
    lists_used: bool = False,
    lists_dropped: bool = False,
) -> IncidentsAt | None:
    """Return the incidents up to a step, with the one of a number; None if none are kept.

    Only the messages of what is shown are read.
    """
    kept = _kept(memory)
    if kept is None:
        return None
    rows = [row for row in map(KeptIncident._make, kept.rows) if row.step <= at]
    used = [row for row in reversed(rows) if row.kind == IncidentKind.USED]
    others = [row for row in rows if row.kind != IncidentKind.USED]
    others.sort(key=lambda row: -row.step)
    return IncidentsAt(
        until=kept.step,
        is_current=kept.step == memory.last_step,
        shown=_shown(memory, others, number, detail) if others else None,
        used=len(used),
        listed=_with_facts(memory, used[:LISTED]) if lists_used else (),
        are_imported=bool(used) and find_step(memory, used[0].step).note == Step.IMPORTED,
        evidence=_evidence(memory, kept, at, lists_dropped),
    )


def fleet_compactions(which: MemoryFilter) -> Compactions:
    """Return what is kept of the compactions of conversations, by one query and a count."""
    words = words_digest()
    chosen = which.rows().filter(found_incidents__compacted__gt=0, found_incidents__words=words)
    newest = chosen.order_by("-updated_at", "id")
    rows = list(newest.values_list("id", "found_incidents__compactions")[:SUMMED])
    found = [
        CompactionOf(memory_id, kept)
        for memory_id, compactions in rows
        for kept in read_kept(compactions)
    ]
    measured = [each for each in found if not each.evidence.why_left_out]
    matching = len(rows) if len(rows) < SUMMED else chosen.count()
    return Compactions(measured, len(found) - len(measured), matching, len(rows))


@one_snapshot()
def evidence_of(memory_id: str, step: int) -> ShownEvidence | None:
    """Return what the compaction of a step lost; None while it is not known, and of other steps.

    Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    kept = _kept(memory)
    return _evidence(memory, kept, step) if kept else None


def _evidence(
    memory: Memory, kept: FoundIncidents, step: int, lists_dropped: bool = False
) -> ShownEvidence | None:
    rows = (row for row in read_kept(kept.compactions) if row.step == step)
    return next((shown_evidence(memory, row, kept.step, lists_dropped) for row in rows), None)


def _shown(
    memory: Memory, rows: Sequence[KeptIncident], number: int, detail: StepDetail | None
) -> ShownIncident:
    number = min(max(number, 1), len(rows))
    row = rows[number - 1]
    seqs = {seq for seq in (row.said, row.asked, row.again) if seq}
    messages = messages_of(memory.pk, seqs)
    again = messages[row.again]
    step = find_step(memory, row.step)
    said_steps = Stay.objects.filter(memory=memory, seq=row.said).values_list("entered_step")
    return ShownIncident(
        incident=_incident(row, sorted_facts(again)),
        number=number,
        number_then=number - sum(other.step > row.step for other in rows),
        count=len(rows),
        left=change_at(memory, row.left_step, detail),
        policy=step.policy,
        texts={seq: readable_text(message) for seq, message in messages.items()},
        tool=getattr(again, "tool_name", None) or "",
        said_step=min(said_steps)[0],
        said_before=step.said_count - (step.last_seq - row.again + 1),
    )


def next_need(memory: Memory, message: MessageDetail, left_step: int) -> NextNeed | None:
    """Return when a message that left at a step was next needed: the next incident of a fact that
    it said. None if no incidents are kept.
    """
    kept = _kept(memory)
    if kept is None:
        return None
    said = facts_of(message.message, fact_words())
    later = [row for row in map(KeptIncident._make, kept.rows) if row.step > left_step and said]
    for first in range(0, len(later), LOOKED_AT):
        for each in _with_facts(memory, later[first : first + LOOKED_AT]):
            if each.fact in said:
                return NextNeed(each, kept.step)
    return NextNeed(None, kept.step)


class NextNeed(NamedTuple):
    """The incident for which a message was next needed, among those up to step `until`."""

    incident: Incident | None
    until: int


def _kept(memory: Memory) -> FoundIncidents | None:
    return FoundIncidents.objects.filter(memory=memory, words=words_digest()).first()


@one_snapshot()
def computed_incidents(memory_id: str) -> IncidentsUntil:
    """Find the incidents among the newest 10,000 messages of a conversation, or 4 million
    characters, and what the compactions among them lost.

    The limit of each is that of the policy in force at its step. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    messages, history = _newest_said(memory_id)
    if not messages:
        return IncidentsUntil(memory.last_step, ())
    first = history.numbers[0]
    times = _times(memory, first)
    steps: dict[int, int] = {}
    for time in times:
        steps[time.number] = min(time.entered, steps.get(time.number, time.entered))
    rows = Message.objects.filter(memory=memory, seq__gte=first, origin=Message.Origin.SYNTHETIC)
    injected = {row.seq: read_message(row) for row in rows}
    said = zip(history.numbers, messages, history.facts, strict=True)
    arrivals = [
        StepMessage(seq, steps[seq], message, facts) for seq, message, facts in said if seq in steps
    ]
    for seq in injected.keys() & steps.keys():
        facts = facts_of(injected[seq], fact_words())
        arrivals.append(StepMessage(seq, steps[seq], injected[seq], facts, is_said=False))
    found = incidents_of(sorted(arrivals, key=lambda each: each.number), times)
    known = dict(zip(history.numbers, messages, strict=True))
    lost = kept_compactions(memory, known, injected, min(steps.values(), default=1))
    return IncidentsUntil(memory.last_step, list(_with_limits(memory, found, history)), lost)


def _newest_said(memory_id: str, estimator: str | None = None) -> tuple[list[ChatMessage], History]:
    return said_with_history(memory_id, estimator, NEWEST_MESSAGES, NEWEST_CHARACTERS)


def _times(memory: Memory, first: int) -> list[MemoryTime]:
    rows = Stay.objects.filter(memory=memory, seq__gte=first)
    return [
        MemoryTime(seq, entered, left, REASONS[reason] if reason else None)
        for seq, entered, left, reason in rows.values_list(
            "seq", "entered_step", "left_step", "reason"
        ).iterator()
    ]


def _with_limits(memory: Memory, found: list[Incident], own: History) -> Iterator[Incident]:
    """Yield incidents with their limits, in their order."""
    needed = {step for each in found for step in (each.step, each.left_step)}
    steps = {step.n: step for step in Step.objects.filter(memory=memory, n__in=needed)}
    histories = {estimator_of(memory): own}
    for each in found:
        policy = steps[each.step].policy
        if policy is None or not can_decide(policy) or steps[each.left_step].by_client:
            yield replace(each, keeping=Keeping(None))
            continue
        if policy.estimator not in histories:
            histories[policy.estimator] = _newest_said(memory.pk, policy.estimator)[1]
        yield from with_limits([each], histories[policy.estimator], policy)


# Lists of conversations


@dataclass(frozen=True)
class NewestIncident:
    """The newest incident of a user or a tool in a conversation, among `count` of them.

    It happened `at` that time, and `tool` is the one that was called again.
    """

    memory_id: str
    incident: Incident
    at: datetime
    count: int
    tool: str


def newest_incidents(rows: Iterable[Memory]) -> dict[str, NewestIncident]:
    """Return the newest incident of each of these conversations that has any, by one query.

    The rows are read together with their `found_incidents`.
    """
    kept = [getattr(row, "found_incidents", None) for row in rows]
    words = words_digest()
    having = [each for each in kept if each and each.newest_at and each.words == words]
    return {each.memory_id: each for each in _newest(having)}


def latest_incidents(size: int) -> list[NewestIncident]:
    """Return the newest incidents of the conversations that had one last, the latest first,
    without those of imports and branches.
    """
    kept = FoundIncidents.objects.filter(newest_at__isnull=False, words=words_digest())
    live = Step.objects.filter(LIVED, memory=OuterRef("memory"), n=OuterRef("newest_step"))
    shown = kept.filter(Exists(live), memory__deleted_at=None)
    return _newest(shown.order_by("-newest_at", "memory_id")[:size])


def _newest(kept: Iterable[FoundIncidents]) -> list[NewestIncident]:
    """Return those whose message can be read, which a redaction may have changed meanwhile."""
    rows = {each.pk: (each, _newest_row(each)) for each in kept}
    if not rows:
        return []
    wanted = any_of({memory_id: [row.again] for memory_id, (_, row) in rows.items()})
    messages = {each.memory_id: each for each in Message.objects.filter(wanted)}
    found = []
    for memory_id, (each, row) in rows.items():
        assert each.newest_at
        with suppress(CorruptRow, LookupError):
            again = read_message(messages[memory_id])
            incident = _incident(row, sorted_facts(again))
            tool = getattr(again, "tool_name", None) or ""
            count = each.said_again + each.fetched_again
            found.append(NewestIncident(memory_id, incident, each.newest_at, count, tool))
    return found


def _newest_row(kept: FoundIncidents) -> KeptIncident:
    """Return the row of the newest incident of a user or a tool; of a message, its first."""
    rows = [row for row in map(KeptIncident._make, kept.rows) if row.kind != IncidentKind.USED]
    return next(row for row in rows if row.step == kept.newest_step)


# What is to be found anew

STALE_AT_ONCE = 50


def stale_incidents(
    since: datetime | None = None, before: datetime | None = None, leaving_out: Collection[str] = ()
) -> dict[str, datetime]:
    """Return the time of the last change of conversations that have changed since their incidents
    were found, those that changed last first. Those that changed before `since` are not looked at,
    nor those that did after `before`.
    """
    fresh = Q(found_incidents__step=F("last_step"), found_incidents__words=words_digest())
    rows = Memory.objects.exclude(fresh).exclude(last_step=0).exclude(id__in=leaving_out)
    rows = rows.filter(imported=None)  # no import goes on
    if since:
        rows = rows.filter(updated_at__gte=since)
    if before:
        rows = rows.filter(updated_at__lte=before)
    newest = rows.order_by("-updated_at", "-id").values_list("id", "updated_at")
    return dict(newest[:STALE_AT_ONCE])
