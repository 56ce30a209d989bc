"""Incidents of stored conversations: found in the ledger as it was, and kept as numbers.

The fact of a kept incident is read again from its message.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
    INCIDENT_RULES,
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
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Memory, Stay, Step
from chatmemory.queries.feed import microseconds
from chatmemory.queries.history import estimator_of, newest_said
from chatmemory.signals import cases_found, incidents_found
from inspector.rooms.evidence.messages import injected_since, messages_of
from inspector.rooms.evidence.models import KeptIncidents


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
        return version_of(INCIDENT_RULES, fact_words(), KeptIncident._fields, KeptFact._fields)

    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        found = found_incidents(memory)
        counts = Counter(each.kind for each in found)
        forced = [each for each in found if each.is_forced]
        newest = forced[-1] if forced else None
        return {
            "content": json.dumps(_kept_incidents(memory, found)),
            "newest_seq": newest and newest.again,
            "newest_step": newest and newest.step,
            "newest_at": newest and microseconds(find_step(memory, newest.step).at),
            "forced": len(forced),
            **{kind.value: counts[kind] for kind in IncidentKind},
        }

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:
        """Send `incidents_found` with the number of new incidents of users and tools by kind."""
        known = before.step if before else 0
        with row.reading() as values:
            new = Counter(each.kind for each in rows_of(values) if each.step > known)
            is_forced = any(each.forced for each in rows_of(values) if each.step > known)
        if is_forced:
            cases_found.send_robust(Memory, memory_id=row.pk, cause="user_repeated")
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


def rows_of(values: Iterable[Iterable[Any]]) -> list[KeptIncident]:
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
        found = with_facts(memory, rows_of(values))
    return IncidentsUntil(kept.step, found, is_current=kept.step == memory.last_step)


@one_snapshot()
def incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation that were found last.

    Raises MemoryNotFound, and CorruptRow for a kept row that somebody altered.
    """
    memory = find_memory(memory_id)
    return incidents_in(memory, kept_row(memory))


@one_snapshot()
def incidents_now(memory_id: str, most: int | None = None) -> IncidentsUntil:
    """Return the incidents up to the newest step. What is not kept yet is computed, and not stored;
    with `most`, only of a conversation of so many messages. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = IncidentsUntil(0, (), is_current=False)
    with suppress(CorruptRow):
        known = incidents_in(memory, kept_row(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return IncidentsUntil(memory.last_step, found_incidents(memory))


def with_facts(memory: Memory, rows: Iterable[KeptIncident]) -> list[Incident]:
    kept = list(rows)
    messages = messages_of(memory.pk, {row.again for row in kept})
    return [incident_of_row(row, messages[row.again]) for row in kept]


def incident_of_row(row: KeptIncident, again: ChatMessage) -> Incident:
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


def kept_row(memory: Memory) -> KeptRow | None:
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
