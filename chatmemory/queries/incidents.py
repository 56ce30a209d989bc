"""Incidents of stored conversations: found in the ledger as it was, and kept as numbers.

The fact of a kept incident is read again from its message.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from chatmemory.conf import fact_words
from chatmemory.core.eviction import REASONS
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.loads import Keeping
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.recall.again import ReadMessage
from chatmemory.core.recall.facts import said_texts
from chatmemory.core.recall.history import History
from chatmemory.core.recall.incidents import (
    Forgotten,
    Incident,
    IncidentKind,
    MemoryTime,
    StepMessage,
    incidents_of,
    with_limits,
)
from chatmemory.core.recall.lexicon import MessageFacts, nameable, speaker_of
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.texts import readable_text
from chatmemory.flags import USER_REPEATED
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptIncidents, KeptRow
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import LIVED, Memory, Message, Stay, Step
from chatmemory.queries.compactions import (
    ShownEvidence,
    evidence_at,
    injected_since,
    messages_of,
)
from chatmemory.queries.feed import microseconds, time_of
from chatmemory.queries.history import estimator_of, newest_said
from chatmemory.queries.phrase import change_at
from chatmemory.queries.rows import MessageDetail, StepDetail
from chatmemory.queries.searching import any_of
from chatmemory.signals import cases_found, incidents_found

RULES = 2  # raise it with each change of what an incident is


@dataclass(frozen=True)
class IncidentsUntil:
    """The incidents up to a step, in order; `is_current` if that is the newest step."""

    step: int
    incidents: Sequence[Incident]
    is_current: bool = True


class KeptFact(NamedTuple):
    """The numbers that are kept of what was forgotten; see `Forgotten`. Its `place` is that among
    what the message could name; None for the result of a call.
    """

    place: int | None
    said: int
    last: int
    left_step: int
    cause: str
    limit: int | None
    tried_every: int | None


class KeptIncident(NamedTuple):
    """The numbers that are kept of an incident; see `Incident`."""

    kind: str
    again: int
    step: int
    forced: bool
    asked: int | None
    tokens: int | None
    same: bool | None
    facts: Sequence[KeptFact]


_OPTIONAL = {"place", "limit", "tried_every", "asked", "tokens", "same"}
_WORDS = {"kind", "cause"}


class IncidentKeeper(Keeper):
    """Keeps the incidents of each conversation, and tells of new ones by a signal."""

    model = KeptIncidents

    def version(self) -> str:
        return version_of(RULES, fact_words(), KeptIncident._fields, KeptFact._fields)

    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        found = found_incidents(memory)
        counts = Counter(each.kind for each in found)
        forced = [each.step for each in found if each.is_forced]
        newest = forced[-1] if forced else None
        return {
            "content": json.dumps(_kept_incidents(memory, found)),
            "newest_step": newest,
            "newest_at": newest and microseconds(find_step(memory, newest).at),
            "forced": len(forced),
            **{kind.value: counts[kind] for kind in IncidentKind},
        }

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:
        """Send `incidents_found` with the number of new incidents of users and tools by kind."""
        known = before.step if before else 0
        with row.reading() as values:
            new = Counter(each.kind for each in _rows(values) if each.step > known)
            is_forced = any(each.forced for each in _rows(values) if each.step > known)
        if is_forced:
            cases_found.send_robust(Memory, memory_id=row.pk, cause=USER_REPEATED.name)
        new.pop(IncidentKind.USED_UNSEEN.value, None)
        if new:
            incidents_found.send_robust(Memory, memory_id=row.pk, new=dict(new))


def _kept_incidents(memory: Memory, found: Sequence[Incident]) -> list[KeptIncident]:
    names = _names(memory, {each.again for each in found})
    return [_kept_incident(each, names[each.again]) for each in found]


def _names(memory: Memory, seqs: Iterable[int]) -> dict[int, list[str]]:
    """Return what some messages could name, by seq."""
    messages = messages_of(memory.pk, set(seqs))
    return {seq: nameable(message, fact_words()) for seq, message in messages.items()}


def _kept_incident(found: Incident, names: Sequence[str]) -> KeptIncident:
    places = {name: place for place, name in enumerate(names)}
    facts = [_kept_fact(each, places[each.fact]) for each in found.facts]
    if found.result:
        facts.insert(0, _kept_fact(found.result, None))
    what = (found.kind, found.again, found.step, found.is_forced, found.asked)
    return KeptIncident(*what, found.tokens, found.is_same, facts)


def _kept_fact(found: Forgotten, place: int | None) -> KeptFact:
    keeping = found.keeping
    limits = (keeping.limit, keeping.tried_every) if keeping else (None, None)
    return KeptFact(place, found.said, found.last, found.left_step, found.cause, *limits)


def _rows(values: Iterable[Iterable[Any]]) -> list[KeptIncident]:
    """Return the incidents of a row's JSON. Raises TypeError or ValueError for other JSON."""
    return [_row(*each) for each in values]


def _row(*values: Any) -> KeptIncident:
    row = KeptIncident(*values)
    facts = [KeptFact(*each) for each in row.facts]
    _check(row)
    for each in facts:
        _check(each)
    if not facts:
        raise TypeError("an incident is of something")
    return row._replace(facts=facts)


def _check(row: KeptIncident | KeptFact) -> None:
    for name, value in zip(row._fields, row, strict=True):
        expected = str if name in _WORDS else list if name == "facts" else int
        if not isinstance(value, expected) and not (value is None and name in _OPTIONAL):
            raise TypeError(f"{name} is {value!r}")


def incidents_in(memory: Memory, kept: KeptRow | None) -> IncidentsUntil:
    """Return the incidents of a kept row, with their facts. Raises CorruptRow."""
    if kept is None:
        return IncidentsUntil(0, (), is_current=not memory.last_step)
    with kept.reading() as values:
        found = _with_facts(memory, _rows(values))
    return IncidentsUntil(kept.step, found, is_current=kept.step == memory.last_step)


@one_snapshot()
def incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation that were found last.

    Raises MemoryNotFound, and CorruptRow for a kept row that somebody altered.
    """
    memory = find_memory(memory_id)
    return incidents_in(memory, _kept(memory))


@one_snapshot()
def incidents_now(memory_id: str, most: int | None = None) -> IncidentsUntil:
    """Return the incidents up to the newest step. What is not kept yet is computed, and not stored;
    with `most`, only of a conversation of so many messages. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = IncidentsUntil(0, (), is_current=False)
    with suppress(CorruptRow):
        known = incidents_in(memory, _kept(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return IncidentsUntil(memory.last_step, found_incidents(memory))


def _with_facts(memory: Memory, rows: Iterable[KeptIncident]) -> list[Incident]:
    kept = list(rows)
    messages = messages_of(memory.pk, {row.again for row in kept})
    return [_incident(row, messages[row.again]) for row in kept]


def _incident(row: KeptIncident, again: ChatMessage) -> Incident:
    """Return the incident of a row, given the message in which it happened."""
    names = nameable(again, fact_words())
    parts = [_forgotten(each, names) for each in row.facts]
    is_call = row.facts[0].place is None
    return Incident(
        IncidentKind(row.kind),
        row.again,
        row.step,
        tuple(parts[is_call:]),
        row.forced,
        row.asked,
        parts[0] if is_call else None,
        row.tokens,
        row.same,
        getattr(again, "tool_name", None) or "",
    )


def _forgotten(kept: KeptFact, names: Sequence[str]) -> Forgotten:
    place, said, last, left_step, cause, limit, tried_every = kept
    fact = "" if place is None else names[place]
    keeping = Keeping(limit, tried_every) if tried_every else None
    return Forgotten(fact, fact, said, last, left_step, REASONS[cause], keeping)


# What a page of a conversation shows of them

LISTED = 100  # uses without a recorded mention
LOOKED_AT = 1_000  # incidents whose facts are read at a time
ON_CARDS = frozenset(IncidentKind) - {IncidentKind.USED_UNSEEN}


@dataclass(frozen=True)
class ShownIncident:
    """An incident with what a page says of it: number `number` of `count`, the newest first.

    At its own step it is number `number_then`. `left` is the change by which the last mention of
    what it is of left memory, and `policy` the one in force at its step. `texts` are those of its
    messages, as people read them. What it is of was said at `said_step`, and `said_before` messages
    had been said before `again`.
    """

    incident: Incident
    number: int
    number_then: int
    count: int
    left: ChangeResult
    policy: Policy | None
    texts: Mapping[int, str]
    said_step: int
    said_before: int


@dataclass(frozen=True)
class IncidentsAt:
    """The incidents up to a step, as far as they were found, which is up to step `until`.

    `shown` is the one of a user or a tool that was asked for. `used` is the number of uses without
    a recorded mention, and `listed` are the newest of them, if they were asked for. `are_imported`
    tells that those came with an import, of which nobody knows what memory held. `evidence` is what
    the step lost, if it compacted. `unreadable` says that what is kept cannot be read.
    """

    until: int
    is_current: bool
    shown: ShownIncident | None = None
    used: int = 0
    listed: Sequence[Incident] = ()
    are_imported: bool = False
    evidence: ShownEvidence | None = None
    unreadable: str = ""


def incidents_at(
    memory: Memory,
    at: int,
    number: int,
    detail: StepDetail | None,
    *,
    lists_used: bool = False,
    lists_dropped: bool = False,
) -> IncidentsAt | None:
    """Return the incidents up to a step, with the one of a number, and what the step lost; None if
    neither is kept.

    Only the messages of what is shown are read. Raises CorruptRow for an altered row.
    """
    kept, evidence = _kept(memory), evidence_at(memory, at, lists_dropped)
    if kept is None:
        return IncidentsAt(0, evidence=evidence, is_current=False) if evidence else None
    with kept.reading() as values:
        rows = [row for row in _rows(values) if row.step <= at]
        used = [row for row in reversed(rows) if row.kind not in ON_CARDS]
        shown = _on_cards(rows)
        return IncidentsAt(
            until=kept.step,
            is_current=kept.step == memory.last_step,
            shown=_shown(memory, shown, number, detail) if shown else None,
            used=sum(len(row.facts) for row in used),
            listed=_with_facts(memory, used[:LISTED]) if lists_used else (),
            are_imported=bool(used) and find_step(memory, used[0].step).note == Step.IMPORTED,
            evidence=evidence,
        )


def _on_cards(rows: Iterable[KeptIncident]) -> list[KeptIncident]:
    """Return the incidents that have a card, the newest first."""
    shown = [row for row in rows if row.kind in ON_CARDS]
    return sorted(shown, key=lambda row: -row.step)


def _shown(
    memory: Memory, rows: Sequence[KeptIncident], number: int, detail: StepDetail | None
) -> ShownIncident:
    number = min(max(number, 1), len(rows))
    row = rows[number - 1]
    first = row.facts[0]
    seqs = {seq for seq in (first.said, row.asked, row.again) if seq}
    messages = messages_of(memory.pk, seqs)
    step = find_step(memory, row.step)
    said_steps = Stay.objects.filter(memory=memory, seq=first.said).values_list("entered_step")
    return ShownIncident(
        incident=_incident(row, messages[row.again]),
        number=number,
        number_then=number - sum(other.step > row.step for other in rows),
        count=len(rows),
        left=change_at(memory, first.left_step, detail),
        policy=step.policy,
        texts={seq: readable_text(message) for seq, message in messages.items()},
        said_step=min(said_steps)[0],
        said_before=step.said_count - (step.last_seq - row.again + 1),
    )


def next_need(
    memory: Memory, message: MessageDetail, left_step: int, at: int, number: int | None
) -> NextNeed | None:
    """Return when a message that left at a step was next needed: the incident of a number among
    those up to step `at`, if one is asked for that happened later, or else the next incident of
    something that the message said. None if no incidents are kept.
    """
    kept = _kept(memory)
    if kept is None:
        return None
    said = set(nameable(message.message, fact_words()))
    with kept.reading() as values:
        rows = _rows(values)
        if number and (asked := _on_cards(row for row in rows if row.step <= at)[number - 1 :]):
            (shown,) = _with_facts(memory, asked[:1])
            return NextNeed(shown, shown.shown, kept.step)
        later = [row for row in rows if row.step > left_step]
        for first in range(0, len(later), LOOKED_AT):
            for each in _with_facts(memory, later[first : first + LOOKED_AT]):
                if fact := _needed_of(each, message.seq, said):
                    return NextNeed(each, fact, kept.step)
    return NextNeed(None, None, kept.step)


def _needed_of(incident: Incident, seq: int, said: Collection[str]) -> Forgotten | None:
    """Return what of an incident a message had said."""
    if incident.result and incident.result.said == seq:
        return incident.result
    return next((each for each in incident.facts if each.fact in said), None)


class NextNeed(NamedTuple):
    """The incident for which a message was next needed, and what of it, among those up to step
    `until`.
    """

    incident: Incident | None
    fact: Forgotten | None
    until: int


def _kept(memory: Memory) -> KeptRow | None:
    return IncidentKeeper().row(memory)


def found_incidents(memory: Memory) -> list[Incident]:
    """Find the incidents among the newest 10,000 messages, or 4 million characters.

    The limit of each is that of the policy in force at its step.
    """
    messages, history = newest_said(memory.pk)
    if not messages:
        return []
    first = history.numbers[0]
    times = _times(memory, first)
    steps: dict[int, int] = {}
    for time in times:
        steps[time.number] = min(time.entered, steps.get(time.number, time.entered))
    injected = injected_since(memory, first)
    said = zip(history.numbers, messages, history.read, strict=True)
    arrivals = [
        StepMessage(seq, steps[seq], message, read) for seq, message, read in said if seq in steps
    ]
    for seq in injected.keys() & steps.keys():
        read = _injected(injected[seq], history)
        arrivals.append(StepMessage(seq, steps[seq], injected[seq], read, is_said=False))
    found = incidents_of(sorted(arrivals, key=lambda each: each.number), times)
    return _with_limits(memory, found, history)


def _injected(message: ChatMessage, history: History) -> ReadMessage:
    """Return a message that was put into the window, with the facts that it mentions."""
    mentions = history.lexicon.mentioned_in(said_texts(message))
    none: frozenset[str] = frozenset()
    return ReadMessage(MessageFacts({}, none, none, mentions, speaker_of(message)))


def _times(memory: Memory, first: int) -> list[MemoryTime]:
    rows = Stay.objects.filter(memory=memory, seq__gte=first)
    return [
        MemoryTime(seq, entered, left, REASONS[reason] if reason else None)
        for seq, entered, left, reason in rows.values_list(
            "seq", "entered_step", "left_step", "reason"
        ).iterator()
    ]


def _with_limits(memory: Memory, found: list[Incident], own: History) -> list[Incident]:
    """Return incidents with their limits, in their order: those of equal policies are found
    together, whatever the limits of these policies are.
    """
    needed = {step for each in found for step in (each.step, each.shown.left_step)}
    steps = {step.n: step for step in Step.objects.filter(memory=memory, n__in=needed)}
    histories = {estimator_of(memory): own}
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    limited = [_without_limit(each) for each in found]
    for position, each in enumerate(found):
        policy = steps[each.step].policy
        if policy is not None and can_decide(policy) and not steps[each.shown.left_step].by_client:
            by_policy[replace(policy, limit=policy.least_limit)].append(position)
    for policy, positions in by_policy.items():
        if policy.estimator not in histories:
            histories[policy.estimator] = newest_said(memory.pk, policy.estimator)[1]
        some = [found[position] for position in positions]
        for position, each in zip(
            positions, with_limits(some, histories[policy.estimator], policy), strict=True
        ):
            limited[position] = each
    return limited


def _without_limit(found: Incident) -> Incident:
    """Return an incident that no limit would have prevented."""
    none = Keeping(None)
    return replace(
        found,
        facts=tuple(replace(each, keeping=none) for each in found.facts),
        result=found.result and replace(found.result, keeping=none),
    )


# Lists of conversations


@dataclass(frozen=True)
class NewestIncident:
    """The newest incident by which a user had to say something again, among `count` of them in a
    conversation. It happened `at` that time.
    """

    memory_id: str
    incident: Incident
    at: datetime
    count: int


@dataclass(frozen=True)
class NewestIncidents:
    """The newest incidents of some conversations by id, and the rows that cannot be read, with the
    sentence that says so.
    """

    by_id: Mapping[str, NewestIncident]
    unreadable: Mapping[str, str]


def newest_incidents(rows: Iterable[Memory]) -> NewestIncidents:
    """Return the newest incident of each of these conversations that has any, by one query.

    The rows are read together with their `keptincidents`.
    """
    kept = [getattr(row, "keptincidents", None) for row in rows]
    version = IncidentKeeper().version()
    return _newest([each for each in kept if each and each.newest_at and each.version == version])


def latest_incidents(size: int) -> NewestIncidents:
    """Return the newest incidents of the conversations that had one last, the latest first,
    without those of imports and branches.
    """
    version = IncidentKeeper().version()
    kept = KeptIncidents.objects.filter(newest_at__isnull=False, version=version)
    live = Step.objects.filter(LIVED, memory=OuterRef("memory"), n=OuterRef("newest_step"))
    shown = kept.filter(Exists(live), memory__deleted_at=None)
    return _newest(list(shown.order_by("-newest_at", "memory_id")[:size]))


def _newest(kept: Sequence[KeptIncidents]) -> NewestIncidents:
    """Return those whose message can be read, which a redaction may have changed meanwhile."""
    rows: dict[str, KeptIncident] = {}
    found: dict[str, NewestIncident] = {}
    unreadable: dict[str, str] = {}
    for each in kept:
        try:
            rows[each.pk] = _newest_row(each)
        except CorruptRow as error:
            unreadable[each.pk] = str(error)
    if rows:
        wanted = any_of({memory_id: [row.again] for memory_id, row in rows.items()})
        messages = {row.memory_id: row for row in Message.objects.filter(wanted)}
        for each in kept:
            if each.pk in rows:
                with suppress(CorruptRow):
                    found[each.pk] = _shortly(each, rows[each.pk], messages)
    return NewestIncidents(found, unreadable)


def _shortly(
    kept: KeptIncidents, row: KeptIncident, messages: Mapping[str, Message]
) -> NewestIncident:
    with kept.reading():
        incident = _incident(row, read_message(messages[kept.pk]))
        return NewestIncident(kept.pk, incident, time_of(kept.newest_at or 0), kept.forced)


def _newest_row(kept: KeptIncidents) -> KeptIncident:
    """Return the row of the newest incident that was forced."""
    with kept.reading() as values:
        rows = [row for row in _rows(values) if row.forced and row.step == kept.newest_step]
        time_of(kept.newest_at or 0)
        return rows[0]
