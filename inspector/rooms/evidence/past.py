"""The past cases of this room's flags, in the ledger of one conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Min

from chatmemory import database
from chatmemory.flag import Case
from chatmemory.keeper import Keeper
from chatmemory.kept import KeptRow
from chatmemory.models import Memory, Stay
from chatmemory.reading.passage import Passage
from inspector.rooms.evidence.compactions import CompactionKeeper
from inspector.rooms.evidence.incidents import IncidentKeeper, KeptIncident, found_rows, rows_of
from inspector.rooms.evidence.losses import StoredEvidence, evidence_rows, found_compactions


def repeated(passage: Passage) -> Iterable[Case]:
    """Return the incidents in which a user had to repeat a fact, each with its step."""
    memory = passage.memory
    row = _current_row(IncidentKeeper(), memory)
    found: Sequence[KeptIncident]
    if row is not None:
        with row.reading() as values:
            found = rows_of(values)
    else:
        found = found_rows(memory, None)
    return [Case(each.step) for each in found if each.forced]


def lost(passage: Passage) -> Iterable[Case]:
    """Return the compactions whose summaries lost a needed term, each at the step of the first
    message that needed such a term.
    """
    memory = passage.memory
    row = _current_row(CompactionKeeper(), memory)
    found: Sequence[StoredEvidence]
    if row is not None:
        with row.reading() as values:
            found = evidence_rows(values)
    else:
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


def _current_row(keeper: Keeper, memory: Memory) -> KeptRow | None:
    row = keeper.row(memory)
    return row if row is not None and keeper.is_current(row, memory) else None
