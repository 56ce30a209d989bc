"""Updates the stored incidents of a conversation without waiting for the background process."""

from __future__ import annotations

from chatmemory.keeping import current
from chatmemory.ledger.lookup import find_memory
from inspector.rooms.evidence.incidents import IncidentKeeper, IncidentsUntil, incidents_in


def current_incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step. Store them if the database
    allows writing.

    Raises MemoryNotFound, and CorruptRow for an altered row.
    """
    row = current(IncidentKeeper(), memory_id)
    return incidents_in(find_memory(memory_id), row)
