"""Diagnoses that are brought up to date at once, and changes of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from chatmemory.exceptions import ChatMemoryError, CorruptRow, MemoryNotFound
from chatmemory.ledger.keeping import current
from chatmemory.models import Memory
from chatmemory.reading.conversations import memory
from chatmemory.services import change
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import policy_from_text, text_of_policy
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosing import DiagnosisKeeper, kept_diagnosis
from inspector.rooms.doctor.diagnosis import Diagnosis
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.reads import ill_conversations, unexamined


def current_diagnosis(memory_id: str, most: int | None = None) -> Diagnosis | None:
    """Return the current diagnosis of a conversation's window for all providers, or None if none is
    kept; see `keeping.current`.

    Raises MemoryNotFound, and CorruptRow for an altered row or message.
    """
    row = current(DiagnosisKeeper(), memory_id, most)
    assert row is None or isinstance(row, KeptDiagnosis)
    return kept_diagnosis(row) if row else None


def diagnoses(
    unreadable: Callable[[str, ChatMemoryError], object], provider: str = ""
) -> Iterator[tuple[str, Diagnosis]]:
    """Bring all diagnoses up to date, and yield the id and the diagnosis of each conversation that
    breaks a rule of a provider in use, or of the named one. `unreadable` is called for a
    conversation that cannot be read.
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


@dataclass(frozen=True)
class Changed:
    """Changed policies: the former policy of each conversation as text, and its version after the
    change. `refused` has the reasons why others were not changed.
    """

    before: Mapping[str, tuple[str, int]]
    refused: Mapping[str, str]


def snapped(memory_ids: Iterable[str]) -> dict[str, Policy]:
    """Return the policies of these conversations, altered so that memory begins with a user message
    after each trim. Conversations without a policy, or whose policy has this already, are left out.
    """
    in_force = {row.pk: row.policy for row in Memory.objects.filter(id__in=list(memory_ids))}
    return {
        memory_id: replace(policy, snap_to_user=True)
        for memory_id, policy in in_force.items()
        if can_decide(policy) and not policy.takes_whole_turns
    }


def change_policies(
    policies: Mapping[str, Policy], actor: str = "", versions: Mapping[str, int] | None = None
) -> Changed:
    """Set policies, one step each. A conversation that is not at its version in `versions` keeps
    its policy.
    """
    before: dict[str, tuple[str, int]] = {}
    refused: dict[str, str] = {}
    for memory_id, policy in policies.items():
        try:
            old = memory(memory_id).policy
            expected = None if versions is None else versions[memory_id]
            result = change(memory_id, policy=policy, actor=actor, expected_version=expected)
            if old is not None:
                before[memory_id] = text_of_policy(old), result.last_step
        except ChatMemoryError as error:
            refused[memory_id] = str(error)
    return Changed(before, refused)


def change_back(before: Mapping[str, tuple[str, int]], actor: str = "") -> Changed:
    """Give conversations their former policies, except those that have changed since."""
    old = {memory_id: policy_from_text(text) for memory_id, (text, _) in before.items()}
    return change_policies(
        {memory_id: policy for memory_id, policy in old.items() if policy is not None},
        actor,
        {memory_id: version for memory_id, (_, version) in before.items()},
    )
