"""What is found of conversations at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chatmemory.core.exceptions import ChatMemoryError, CorruptRow, MemoryNotFound
from chatmemory.diagnosis import Diagnosis
from chatmemory.kept import KeptDiagnosis
from chatmemory.ledger.lookup import find_memory
from chatmemory.queries.diagnosis import DiagnosisKeeper, kept_diagnosis
from chatmemory.queries.doctor import ill_conversations, unexamined
from chatmemory.queries.incidents import IncidentKeeper, IncidentsUntil, incidents_in
from chatmemory.services.keeping import current


def current_diagnosis(memory_id: str, most: int | None = None) -> Diagnosis | None:
    """Return the diagnosis of a conversation's window; see `keeping.current`. None if none is kept.

    Raises MemoryNotFound, and CorruptRow for an altered row or message.
    """
    row = current(DiagnosisKeeper(), memory_id, most)
    assert row is None or isinstance(row, KeptDiagnosis)
    return kept_diagnosis(row) if row else None


def diagnoses(
    unreadable: Callable[[str, ChatMemoryError], object],
) -> Iterator[tuple[str, Diagnosis]]:
    """Yield the id and the diagnosis of each conversation that breaks a rule, after a look at those
    that have changed. `unreadable` is called for one that cannot be read.
    """
    changed = list(unexamined().order_by("id").values_list("id", flat=True))
    for memory_id in changed:
        try:
            found = current_diagnosis(memory_id)
        except MemoryNotFound:  # deleted meanwhile
            continue
        except ChatMemoryError as error:
            unreadable(memory_id, error)
            continue
        if found and found.listed:
            yield memory_id, found
    seen = set(changed)
    for each in ill_conversations():
        if each.unreadable:
            unreadable(each.memory.id, CorruptRow(each.unreadable))
        elif each.memory.id not in seen:
            yield each.memory.id, each.diagnosis


def current_incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step; see `keeping.current`.

    Raises MemoryNotFound, and CorruptRow for an altered row.
    """
    row = current(IncidentKeeper(), memory_id)
    return incidents_in(find_memory(memory_id), row)
