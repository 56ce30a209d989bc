"""Stores and reads incidents of conversations as numbers.

The text of a fact is not stored, but read from the message that repeats the fact.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from chatmemory.columns import ColumnValues
from chatmemory.conf import fact_words
from chatmemory.exceptions import CorruptRow
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory
from chatmemory.reading.feed import microseconds
from chatmemory.recall.facts import Words
from chatmemory.recall.incidents import INCIDENT_RULES, Forgotten, Incident, IncidentKind
from chatmemory.recall.lexicon import nameable
from chatmemory.recall.loads import Keeping
from chatmemory.signals import cases_found, incidents_found
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.eviction import REASONS
from inspector.rooms.evidence.finding import found_incidents, later_incidents, settled_incidents
from inspector.rooms.evidence.messages import messages_of
from inspector.rooms.evidence.models import KeptIncidents
from inspector.rooms.evidence.stretches import settled_part, settled_until

ON_CARDS = frozenset(IncidentKind) - {IncidentKind.USED_UNSEEN}


@dataclass(frozen=True)
class IncidentsUntil:
    """The incidents of a conversation up to `step`, in order. `is_current` means that the
    conversation has no later step.
    """

    step: int
    incidents: Sequence[Incident]
    is_current: bool = True


class KeptFact(NamedTuple):
    """The stored numbers of a fact, or of the result of a tool call, that left memory and came up
    again. See `Forgotten`.

    - `place` is the fact's index among the facts of the message that repeats the fact. None for a
      repeated tool call.
    - `said` is the seq of the last user message with the fact before the repetition. If no user
      said the fact, `said` is the seq of the last tool result with the fact.
    - `last` is the seq of the last message in memory with the fact. This message left at
      `left_step` for the reason `cause`.
    - `limit` is the smallest limit that would have kept the fact; larger limits would have kept it
      too. None if no limit would have kept the fact, or if the limit is unknown.
    - `tried_every` is the distance between the tried limits: 1 if every limit was tried. None if
      the limit is unknown.
    - `pair` is True if the fact is a value with its key, such as `membership=gold`.
    """

    place: int | None
    said: int
    last: int
    left_step: int
    cause: str
    limit: int | None
    tried_every: int | None
    pair: bool


class KeptIncident(NamedTuple):
    """The stored numbers of an incident; see `Incident`.

    - `kind` is the name of an `IncidentKind`.
    - `again` is the seq of the message that repeats the `facts`, and `step` the step that added it.
    - `forced` means that the user had to repeat a fact.
    - `asked` is the seq of the message in which the assistant asked for the fact, if any.
    - `tokens` and `same` are about a repeated tool call: the size of the new result, and whether it
      is equal to the earlier result. Both are None for other incidents.
    """

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
    """Derives and stores the incidents of each conversation, and sends a signal for new ones."""

    model = KeptIncidents

    def version(self) -> str:
        return _version(fact_words())

    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        rows = found_rows(memory, before)
        counts = Counter(row.kind for row in rows)
        forced = [row for row in rows if row.forced]
        newest = forced[-1] if forced else None
        return {
            "content": json.dumps(rows),
            "newest_seq": newest and newest.again,
            "newest_step": newest and newest.step,
            "newest_at": newest and microseconds(find_step(memory, newest.step).at),
            "forced": len(forced),
            **{kind.value: counts[kind.value] for kind in IncidentKind},
        }

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:
        """Send signals about new incidents: those in `row` that are not in `before`, the previous
        row.

        - `cases_found` is sent if a user had to repeat a fact in a new incident.
        - `incidents_found` is sent with the numbers of new incidents by kind. Incidents of the kind
          `USED_UNSEEN` do not count.
        """
        known: set[int] = set()
        with suppress(CorruptRow):
            known = {each.again for each in _rows_in(before)} if before else known
        new = [each for each in _rows_in(row) if each.again not in known]
        if any(each.forced for each in new):
            cases_found.send_robust(Memory, memory_id=row.pk, cause="user_repeated")
        counts = Counter(each.kind for each in new if each.kind in ON_CARDS)
        if counts:
            incidents_found.send_robust(Memory, memory_id=row.pk, new=dict(counts))


@lru_cache(maxsize=4)
def _version(words: Words) -> str:
    return version_of(INCIDENT_RULES, words, KeptIncident._fields, KeptFact._fields)


def found_rows(memory: Memory, before: KeptRow | None) -> list[KeptIncident]:
    """Return the incidents of a conversation.

    `before` is the conversation's row of an earlier step, or None. Incidents that later messages
    cannot change may be copied from this row (see `stretches`).
    """
    settled = settled_until(memory.last_seq)
    known = settled_part(memory, before, _rows_in, _settled_rows) or []
    rows = [row for row in known if row.again <= settled]
    return rows + _kept_incidents(memory, later_incidents(memory, settled))


def _rows_in(kept: KeptRow) -> list[KeptIncident]:
    with kept.reading() as values:
        return rows_of(values)


def _settled_rows(memory: Memory, settled: int) -> list[KeptIncident]:
    return _kept_incidents(memory, settled_incidents(memory, settled))


def _kept_incidents(memory: Memory, found: Sequence[Incident]) -> list[KeptIncident]:
    names = _names(memory, {each.again for each in found})
    return [_kept_incident(each, names[each.again]) for each in found]


def _names(memory: Memory, seqs: Iterable[int]) -> dict[int, list[str]]:
    """Return the texts in these messages that could be facts, by seq."""
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
    return KeptFact(
        place,
        found.said,
        found.last,
        found.left_step,
        found.cause,
        keeping.limit if keeping else None,
        keeping.tried_every if keeping else None,
        found.is_pair,
    )


def rows_of(values: Iterable[Iterable[JsonValue]]) -> list[KeptIncident]:
    """Read incidents from the JSON of a stored row. Raises TypeError or ValueError if the JSON does
    not describe incidents.
    """
    return [_row(*each) for each in values]


def _row(*values: JsonValue) -> KeptIncident:
    row = KeptIncident(*values)
    facts = [KeptFact(*each) for each in row.facts]
    _check(row)
    for each in facts:
        _check(each)
    if not facts:
        raise TypeError("a stored incident must name at least one fact")
    return row._replace(facts=facts)


def _check(row: KeptIncident | KeptFact) -> None:
    for name, value in zip(row._fields, row, strict=True):
        expected = str if name in _WORDS else list if name == "facts" else int
        if not isinstance(value, expected) and not (value is None and name in _OPTIONAL):
            raise TypeError(
                f"the field {name} of a stored incident has a value of the wrong type: {value!r}"
            )


def incidents_in(memory: Memory, kept: KeptRow | None) -> IncidentsUntil:
    """Return the incidents in the stored row `kept`, with the texts of their facts. If `kept` is
    None, the result has no incidents. Raises CorruptRow.
    """
    if kept is None:
        return IncidentsUntil(0, (), is_current=not memory.last_step)
    with kept.reading() as values:
        found = with_facts(memory.pk, rows_of(values))
    return IncidentsUntil(kept.step, found, is_current=kept.step == memory.last_step)


@one_snapshot()
def incidents(memory_id: str) -> IncidentsUntil:
    """Return the stored incidents of a conversation, as of the last time they were computed.

    Raises MemoryNotFound, and CorruptRow for a stored row that was altered.
    """
    memory = find_memory(memory_id)
    return incidents_in(memory, kept_row(memory))


@one_snapshot()
def incidents_now(memory_id: str, most: int | None = None) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step.

    If the stored incidents are not up to date, they are computed, but not stored. For a
    conversation with more than `most` messages, nothing is computed. The result then has only
    stored incidents, possibly none. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    known = IncidentsUntil(0, (), is_current=False)
    with suppress(CorruptRow):
        known = incidents_in(memory, kept_row(memory))
    if known.is_current or (most is not None and memory.said_count > most):
        return known
    return IncidentsUntil(memory.last_step, found_incidents(memory))


def with_facts(memory_id: str, rows: Iterable[KeptIncident]) -> list[Incident]:
    kept = list(rows)
    messages = messages_of(memory_id, {row.again for row in kept})
    return [incident_of_row(row, messages[row.again]) for row in kept]


def incident_of_row(row: KeptIncident, again: ChatMessage) -> Incident:
    """Return the incident of a stored row. The texts of its facts are read from `again`, the
    message that repeats the facts.
    """
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
    place, said, last, left_step, cause, limit, tried_every, is_pair = kept
    fact = "" if place is None else names[place]
    keeping = Keeping(limit, tried_every) if tried_every else None
    return Forgotten(fact, fact, said, last, left_step, REASONS[cause], keeping, is_pair)


def kept_row(memory: Memory) -> KeptRow | None:
    return IncidentKeeper().row(memory)
