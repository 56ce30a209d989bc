"""Incidents of stored conversations: found in the ledger as it was, and kept as numbers.

The fact of a kept incident is read again from its message.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from chatmemory.conf import fact_words
from chatmemory.core.eviction import REASONS
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.loads import Keeping
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
    sorted_facts,
)
from chatmemory.queries.feed import microseconds, time_of
from chatmemory.queries.history import estimator_of, newest_said
from chatmemory.queries.phrase import change_at
from chatmemory.queries.rows import MessageDetail, StepDetail
from chatmemory.queries.searching import any_of
from chatmemory.signals import incidents_found

RULES = 1  # raise it with each change of what an incident is


@dataclass(frozen=True)
class IncidentsUntil:
    """The incidents up to a step, in order; `is_current` if that is the newest step."""

    step: int
    incidents: Sequence[Incident]
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


_OPTIONAL = {"asked", "tokens", "limit", "tried_every"}
_WORDS = {"kind", "cause"}


class IncidentKeeper(Keeper):
    """Keeps the incidents of each conversation, and tells of new ones by a signal."""

    model = KeptIncidents

    def version(self) -> str:
        return version_of(RULES, fact_words(), KeptIncident._fields)

    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        found = found_incidents(memory)
        counts = Counter(each.kind for each in found)
        repeated = [each.step for each in found if each.kind is not IncidentKind.USED]
        newest = repeated[-1] if repeated else None
        return {
            "content": json.dumps([_kept_incident(each) for each in found]),
            "newest_step": newest,
            "newest_at": newest and microseconds(find_step(memory, newest).at),
            **{kind.value: counts[kind] for kind in IncidentKind},
        }

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:
        """Send `incidents_found` with the number of new incidents of users and tools by kind."""
        known = before.step if before else 0
        with row.reading() as values:
            new = Counter(each.kind for each in _rows(values) if each.step > known)
        new.pop(IncidentKind.USED.value, None)
        if new:
            incidents_found.send_robust(Memory, memory_id=row.pk, new=dict(new))


def _kept_incident(found: Incident) -> KeptIncident:
    keeping = found.keeping
    whole = (found.kind, found.place, found.said, found.last, found.left_step, found.cause)
    again = (found.asked, found.again, found.step, found.tokens)
    limits = (keeping.limit, keeping.tried_every) if keeping else (None, None)
    return KeptIncident(*whole, *again, *limits)


def _rows(values: Iterable[Iterable[Any]]) -> list[KeptIncident]:
    """Return the incidents of a row's JSON. Raises TypeError or ValueError for other JSON."""
    return [_checked(KeptIncident(*each)) for each in values]


def _checked(row: KeptIncident) -> KeptIncident:
    for name, value in zip(row._fields, row, strict=True):
        expected = str if name in _WORDS else int
        if not isinstance(value, expected) and not (value is None and name in _OPTIONAL):
            raise TypeError(f"{name} is {value!r}")
    return row


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
    facts = {seq: sorted_facts(message) for seq, message in messages.items()}
    return [_incident(row, facts[row.again]) for row in kept]


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


# What a page of a conversation shows of them

LISTED = 100  # uses without a recorded mention
LOOKED_AT = 1_000  # incidents whose facts are read at a time


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
            evidence=evidence,
        )


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
    with kept.reading() as values:
        later = [row for row in _rows(values) if row.step > left_step and said]
        for first in range(0, len(later), LOOKED_AT):
            for each in _with_facts(memory, later[first : first + LOOKED_AT]):
                if each.fact in said:
                    return NextNeed(each, kept.step)
    return NextNeed(None, kept.step)


class NextNeed(NamedTuple):
    """The incident for which a message was next needed, among those up to step `until`."""

    incident: Incident | None
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
    said = zip(history.numbers, messages, history.facts, strict=True)
    arrivals = [
        StepMessage(seq, steps[seq], message, facts) for seq, message, facts in said if seq in steps
    ]
    for seq in injected.keys() & steps.keys():
        facts = facts_of(injected[seq], fact_words())
        arrivals.append(StepMessage(seq, steps[seq], injected[seq], facts, is_said=False))
    found = incidents_of(sorted(arrivals, key=lambda each: each.number), times)
    return _with_limits(memory, found, history)


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
    needed = {step for each in found for step in (each.step, each.left_step)}
    steps = {step.n: step for step in Step.objects.filter(memory=memory, n__in=needed)}
    histories = {estimator_of(memory): own}
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    limited = [replace(each, keeping=Keeping(None)) for each in found]
    for position, each in enumerate(found):
        policy = steps[each.step].policy
        if policy is not None and can_decide(policy) and not steps[each.left_step].by_client:
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
        again = read_message(messages[kept.pk])
        incident = _incident(row, sorted_facts(again))
        tool = getattr(again, "tool_name", None) or ""
        count = kept.said_again + kept.fetched_again
        return NewestIncident(kept.pk, incident, time_of(kept.newest_at or 0), count, tool)


def _newest_row(kept: KeptIncidents) -> KeptIncident:
    """Return the row of the newest incident of a user or a tool; of a message, its first."""
    with kept.reading() as values:
        rows = [row for row in _rows(values) if row.kind != IncidentKind.USED]
        found = [row for row in rows if row.step == kept.newest_step]
        time_of(kept.newest_at or 0)
        return found[0]
