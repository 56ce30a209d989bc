"""Services that add, replace and clear the messages of a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import clear, refill
from chatmemory.ledger.adding import (
    Recount,
    add_all,
    change_policy,
    count_ahead,
    count_all,
    counted_entries,
    is_counted_quickly,
    required_policy,
)
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.services.transaction import locked
from chatmemory.services.validation import (
    Storable,
    check_id,
    check_policy,
    storable_additions,
    storable_messages,
)


def add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> list[ChangeResult]:
    """Add messages, one step each, in one transaction.

    A message with a known client id and the same content is not added again; its result has its seq
    and no step. Raises MemoryNotFound, PolicyRequired (the client decides this window),
    PolicyUnavailable, EstimatorUnavailable, VersionConflict, DuplicateClientId, InvalidValue,
    MessageTooLarge, UnstorableText.
    """
    new = new_messages(memory_id, messages)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return add_all(recorder, new)


def new_messages(
    memory_id: str, messages: Iterable[ChatMessage | NewMessage], policy: Policy | None = None
) -> Storable[NewMessage]:
    """Return messages that are to be added, checked and counted, for a new policy if one is given.

    Raises the exceptions of `add`.
    """
    new = storable_additions(messages)
    said = [item.message for item in new]
    check_id(memory_id)
    if policy is not None:
        count_all(said, policy.estimator)
    elif not is_counted_quickly(said):
        count_ahead(memory_id, said)
    return new


def change_and_add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    policy: Policy | None,
    actor: str = "",
) -> list[ChangeResult]:
    """Change the policy, if one is given, and add messages, in one transaction.

    Raises the exceptions of `add`.
    """
    policy = check_policy(policy)
    new = new_messages(memory_id, messages, policy)
    recount = None if policy is None else Recount.ahead(memory_id, policy.estimator)
    with locked(memory_id, actor=actor) as recorder:
        if policy is not None:
            change_policy(recorder, policy, recount)
        return add_all(recorder, new)


def set_messages(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Replace the window and trim it by the policy. Raises the exceptions of `add`."""
    check_id(memory_id)
    messages = storable_messages(messages)
    count_ahead(memory_id, messages)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        advice = "set a policy before replacing its messages"
        policy = required_policy(memory_id, recorder.policy, advice)
        arrivals = counted_entries(recorder.memory, messages)
        return recorder.record(refill(recorder.window, arrivals, policy))


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Clear the window, but not the history. Raises MemoryNotFound, VersionConflict."""
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return recorder.record(clear(recorder.window, recorder.policy))
