"""Diagnoses of conversations for tests."""

from __future__ import annotations

from chatmemory.models import Memory
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.writes import current_diagnosis


def diagnosed(*memory_ids: str) -> Diagnosis:
    """Keep the diagnosis of some or all conversations, and return the last one for the providers in
    use.
    """
    kept = Diagnosis(0)
    for memory_id in memory_ids or Memory.objects.order_by("id").values_list("id", flat=True):
        found = current_diagnosis(memory_id)
        kept = found.under(choices().of(memory_id)) if found else kept
    return kept


def kept(memory_id: str = "m") -> KeptDiagnosis:
    """Keep the diagnosis of a conversation, and return its row."""
    diagnosed(memory_id)
    return KeptDiagnosis.objects.get(memory=memory_id)
