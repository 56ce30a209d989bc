"""What the doctor does at once: the diagnosis of a conversation, and those of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from chatmemory.core.exceptions import ChatMemoryError, CorruptRow, MemoryNotFound
from chatmemory.core.stored_policies import can_decide
from chatmemory.queries import memory
from chatmemory.services import change
from chatmemory.services.keeping import current
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosing import DiagnosisKeeper, kept_diagnosis
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.reads import ill_conversations, unexamined


def current_diagnosis(memory_id: str, most: int | None = None) -> Diagnosis | None:
    """Return the diagnosis of a conversation's window, by every provider; see `keeping.current`.
    None if none is kept.

    Raises MemoryNotFound, and CorruptRow for an altered row or message.
    """
    row = current(DiagnosisKeeper(), memory_id, most)
    assert row is None or isinstance(row, KeptDiagnosis)
    return kept_diagnosis(row) if row else None


def diagnoses(
    unreadable: Callable[[str, ChatMemoryError], object], provider: str = ""
) -> Iterator[tuple[str, Diagnosis]]:
    """Yield the id and the diagnosis of each conversation that breaks a rule of a provider in use,
    or of the one that is named, after a look at those that have changed. `unreadable` is called for
    one that cannot be read.
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
    seen = set(changed)
    for each in ill_conversations(provider):
        if each.unreadable:
            unreadable(each.memory.id, CorruptRow(each.unreadable))
        elif each.memory.id not in seen and each.problems:
            yield each.memory.id, each.diagnosis


def snap(memory_ids: Iterable[str], actor: str = "") -> int:
    """Let memory begin with a user message after each trim, where a policy decides the windows of
    these conversations. Return how many policies changed.
    """
    changed = 0
    for memory_id in memory_ids:
        with suppress(ChatMemoryError):
            policy = memory(memory_id).policy
            if can_decide(policy) and not policy.snap_to_user:
                change(memory_id, policy=replace(policy, snap_to_user=True), actor=actor)
                changed += 1
    return changed
