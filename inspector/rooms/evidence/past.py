"""Finds past cases of two causes in the ledger of a conversation: incidents, and terms that
summaries lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from django.db.models import Min

from chatmemory import database
from chatmemory.exceptions import CorruptRow
from chatmemory.flag import Case
from chatmemory.keeper import Keeper
from chatmemory.messages.json_values import JsonValue
from chatmemory.models import Memory, Stay
from chatmemory.reading.passage import Passage
from inspector.rooms.evidence.compactions import CompactionKeeper
from inspector.rooms.evidence.incidents import IncidentKeeper, KeptIncident, found_rows, rows_of
from inspector.rooms.evidence.losses import StoredEvidence, evidence_rows, found_compactions

T = TypeVar("T")


def repeated(passage: Passage) -> Iterable[Case]:
    """Return a case for each step at which a user had to repeat a fact. The whole conversation
    `passage.memory` is searched, not only the passage.
    """
    memory = passage.memory
    found: Sequence[KeptIncident] | None = _kept(IncidentKeeper(), memory, rows_of)
    if found is None:
        found = found_rows(memory, None)
    return [Case(each.step) for each in found if each.forced]


def lost(passage: Passage) -> Iterable[Case]:
    """Return a case for each compaction whose summary lost a term that was needed later. A case has
    the first step at which any of the summary's lost terms was needed.

    The whole conversation `passage.memory` is searched, not only the passage.
    """
    memory = passage.memory
    found: Sequence[StoredEvidence] | None = _kept(CompactionKeeper(), memory, evidence_rows)
    if found is None:
        found = found_compactions(memory).compactions
    used = [
        min(lost_terms)
        for each in found
        if not each.why_left_out
        and (lost_terms := [term.used for term in each.terms if term.is_lost])
    ]
    if not used:
        return []
    stays = Stay.objects.filter(database.in_list("seq", set(used)), memory=memory)
    steps = dict(stays.values_list("seq").annotate(Min("entered_step")))
    return [Case(steps[seq]) for seq in sorted(used) if seq in steps]


def _kept(keeper: Keeper, memory: Memory, read: Callable[[JsonValue], list[T]]) -> list[T] | None:
    """Return the values in the current row of a keeper. Return None if the row is missing, outdated
    or altered.
    """
    row = keeper.row(memory)
    if row is None or not keeper.is_current(row, memory):
        return None
    with suppress(CorruptRow), row.reading() as values:
        return read(values)
    return None
