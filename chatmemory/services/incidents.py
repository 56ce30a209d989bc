"""Incidents are kept as they are found, until the conversation changes.

What is kept are numbers. They go with the conversation, and with a redaction.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from django.db import DatabaseError

from chatmemory import database
from chatmemory.core.recall.incidents import IncidentKind
from chatmemory.models import FoundIncidents, Memory, Step
from chatmemory.queries.incidents import (
    IncidentsUntil,
    computed_incidents,
    incidents,
    kept_row,
    words_digest,
)


def current_incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step, and keep them where the
    database can be written and the conversation has not changed meanwhile. Raises MemoryNotFound.
    """
    found = incidents(memory_id)
    if found.is_current:
        return found
    found = computed_incidents(memory_id)
    with suppress(DatabaseError):
        _keep_if_unchanged(memory_id, found)
    return found


def _keep_if_unchanged(memory_id: str, found: IncidentsUntil) -> None:
    with database.atomic():
        # Citus cannot lock rows of several conversations with one statement.
        locked = Memory.objects.select_for_update(skip_locked=True).filter(id=memory_id)
        if list(locked.values_list("last_step", flat=True)) == [found.step]:
            _keep(memory_id, found)


def _keep(memory_id: str, found: IncidentsUntil) -> None:
    counts = Counter(each.kind for each in found.incidents)
    newest = [each.step for each in found.incidents if each.kind is not IncidentKind.USED][-1:]
    at = Step.objects.filter(memory=memory_id, n__in=newest).values_list("at", flat=True).first()
    values = {
        "step": found.step,
        "words": words_digest(),
        "rows": [kept_row(each) for each in found.incidents],
        "newest_step": newest[0] if newest else None,
        "newest_at": at,
        **{kind.value: counts[kind] for kind in IncidentKind},
    }
    FoundIncidents.objects.update_or_create(memory_id=memory_id, defaults=values)
