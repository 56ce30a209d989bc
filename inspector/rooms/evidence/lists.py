"""Reads the newest incidents of many conversations, for the overview and its feed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, OuterRef

from chatmemory.exceptions import CorruptRow
from chatmemory.ledger.windows import read_message
from chatmemory.models import LIVED, Message, Step
from chatmemory.reading.feed import time_of
from chatmemory.reading.finding import any_of
from chatmemory.recall.incidents import Incident, path_words
from inspector.rooms.evidence.incidents import (
    IncidentKeeper,
    KeptIncident,
    incident_of_row,
    rows_of,
)
from inspector.rooms.evidence.models import KeptIncidents


@dataclass(frozen=True)
class NewestIncident:
    """One conversation's newest incident in which a user had to repeat a fact, with the time of
    this incident (`at`).

    `count` is the number of the conversation's incidents in which a user had to repeat a fact.
    """

    memory_id: str
    incident: Incident
    at: datetime
    count: int


@dataclass(frozen=True)
class NewestIncidents:
    """The newest incident of each conversation, and a sentence about each stored row that cannot be
    read, both by conversation ID.
    """

    by_id: Mapping[str, NewestIncident]
    unreadable: Mapping[str, str]


def newest_incidents(memory_ids: Iterable[str]) -> NewestIncidents:
    """Return, for each of the given conversations, the newest incident in which a user had to
    repeat a fact. Makes one query.
    """
    messages = Message.objects.select_related("memory__keptincidents").filter(
        memory__in=list(memory_ids),
        seq=F("memory__keptincidents__newest_seq"),
        memory__keptincidents__version=IncidentKeeper().version(),
    )
    return _read((each.memory.keptincidents, each) for each in messages)


def latest_incidents(size: int) -> NewestIncidents:
    """Return the newest incident of each conversation, for up to `size` conversations, the latest
    first.

    Incidents count only if a user had to repeat a fact. Conversations whose newest incident was
    imported, or copied into a branch, are left out.
    """
    version = IncidentKeeper().version()
    live = Step.objects.filter(LIVED, memory=OuterRef("memory"), n=OuterRef("newest_step"))
    kept = KeptIncidents.objects.filter(newest_at__isnull=False, version=version)
    shown = kept.filter(Exists(live), memory__deleted_at=None)
    return _with_messages(list(shown.order_by("-newest_at", "memory_id")[:size]))


def newest_said_again(memory_id: str) -> str:
    """Describe the newest fact that a user had to repeat: `A-1182 (said in #25) left memory at step
    43; …`. Return "" if there is none.
    """
    found = newest_incidents([memory_id]).by_id.get(memory_id)
    if found is None:
        return ""
    return path_words(found.incident)


def came_up_again(found: NewestIncident) -> str:
    """Describe an incident in a few words: `A-1182 had to be repeated by the user`."""
    return f"{found.incident.what} {found.incident.happened}"


def _with_messages(kept: Sequence[KeptIncidents]) -> NewestIncidents:
    seqs = {row.pk: [row.newest_seq] for row in kept if row.newest_seq}
    messages = Message.objects.filter(any_of(seqs)) if seqs else ()
    by_id = {each.memory_id: each for each in messages}
    return _read((row, by_id.get(row.pk)) for row in kept)


def _read(rows: Iterable[tuple[KeptIncidents, Message | None]]) -> NewestIncidents:
    """Return the incidents that can still be read. A message may have been redacted meanwhile."""
    found: dict[str, NewestIncident] = {}
    unreadable: dict[str, str] = {}
    for kept, message in rows:
        try:
            row = _newest_row(kept)
        except CorruptRow as error:
            unreadable[kept.pk] = str(error)
            continue
        with suppress(CorruptRow):
            if message is not None:
                found[kept.pk] = _shortly(kept, row, message)
    return NewestIncidents(found, unreadable)


def _shortly(kept: KeptIncidents, row: KeptIncident, message: Message) -> NewestIncident:
    with kept.reading():
        incident = incident_of_row(row, read_message(message))
        return NewestIncident(kept.pk, incident, time_of(kept.newest_at or 0), kept.forced)


def _newest_row(kept: KeptIncidents) -> KeptIncident:
    """Return the numbers of the newest incident in which a user had to repeat a fact."""
    with kept.reading() as values:
        rows = [row for row in rows_of(values) if row.forced and row.again == kept.newest_seq]
        time_of(kept.newest_at or 0)
        return rows[0]
