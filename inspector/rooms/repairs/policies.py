"""Changes the policies of several conversations, and restores the former policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from chatmemory.exceptions import ChatMemoryError
from chatmemory.models import Memory
from chatmemory.reading.conversations import memory
from chatmemory.services import change
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.written_policies import policy_from_text, text_of_policy


@dataclass(frozen=True)
class Changed:
    """The result of changing the policies of several conversations. The keys are conversation IDs.

    `before` has the former policy as text, and the conversation's version after the change.
    `refused` has the reason for each conversation that was not changed.
    """

    before: Mapping[str, tuple[str, int]]
    refused: Mapping[str, str]


def snapped(memory_ids: Iterable[str]) -> dict[str, Policy]:
    """Return a new policy for each conversation, by conversation ID. It is the present policy with
    the option *start at a user message* turned on. Nothing is stored.

    Conversations whose memory starts at a user message already are left out. So are conversations
    whose client decides the window, or whose kind of policy is not installed.
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
    """Set the policies of several conversations. The keys of `policies` and `versions` are
    conversation IDs. Each change is a step of its conversation.

    `versions` has the expected version of each conversation. A conversation with a different
    version is not changed. Without `versions`, the versions are not checked. `Changed.refused` has
    the conversations that were not changed.
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
    """Restore former policies. `before` is what `change_policies` returned as `Changed.before`. A
    conversation that was changed since then keeps its policy.
    """
    old = {memory_id: policy_from_text(text) for memory_id, (text, _) in before.items()}
    return change_policies(
        {memory_id: policy for memory_id, policy in old.items() if policy is not None},
        actor,
        {memory_id: version for memory_id, (_, version) in before.items()},
    )
