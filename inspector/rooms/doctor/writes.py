"""Brings diagnoses up to date at once, without waiting for the background thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chatmemory.exceptions import ChatMemoryError, CorruptRow, MemoryNotFound
from chatmemory.keeping import current
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosing import DiagnosisKeeper, kept_diagnosis
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.reads import ill_conversations, unexamined


def current_diagnosis(memory_id: str, most: int | None = None) -> Diagnosis | None:
    """Return the diagnosis of a conversation's window for all providers. A diagnosis that is out of
    date is made again and stored.

    If the window has more messages than `most`, the stored diagnosis is returned even if it is out
    of date; None if there is none. Raises MemoryNotFound, and CorruptRow for an altered row or
    message.
    """
    row = current(DiagnosisKeeper(), memory_id, most)
    assert row is None or isinstance(row, KeptDiagnosis)
    return kept_diagnosis(row) if row else None


def diagnoses(
    unreadable: Callable[[str, ChatMemoryError], object], provider: str = ""
) -> Iterator[tuple[str, Diagnosis]]:
    """Update all diagnoses, and yield pairs of conversation ID and diagnosis for the conversations
    with a problem.

    Only problems for the given `provider` count; if it is "", problems for any provider in use.
    `unreadable` is called for each conversation that cannot be read.
    """
    made = choices().naming(provider)
    changed = list(unexamined().order_by("id").values_list("id", flat=True))
    for memory_id in changed:
        try:
            found = current_diagnosis(memory_id)
        except MemoryNotFound:  # deleted meanwhile
            continue
        except ChatMemoryError as error:
            unreadable(memory_id, error)
            continue
        found = found and found.under(made.of(memory_id))
        if found and found.listed:
            yield memory_id, found
    done = set(changed)
    for each in ill_conversations(provider):
        if each.unreadable:
            unreadable(each.memory.id, CorruptRow(each.unreadable))
        elif each.memory.id not in done and each.problems:
            yield each.memory.id, each.diagnosis
