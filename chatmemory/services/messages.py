"""Services that add, replace and clear the messages of a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import clear, refill
from chatmemory.ledger.adding import add_all, required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import (
    change_policy,
    count_ahead,
    counted_entries,
    is_counted_quickly,
)
from chatmemory.ledger.recorder import Recorder
from chatmemory.services.locking import prepared, recorded
from chatmemory.services.validation import (
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
    record = partial(add_all, messages=new)
    return recorded(memory_id, record, actor=actor, expected_version=expected_version)


def new_messages(memory_id: str, messages: Iterable[ChatMessage | NewMessage]) -> list[NewMessage]:
    """Return messages that are to be added, checked and counted. Raises the exceptions of `add`."""
    new = storable_additions(messages)
    said = [item.message for item in new]
    check_id(memory_id)
    if not is_counted_quickly(said):
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
    new = new_messages(memory_id, messages)

    def record(recorder: Recorder) -> list[ChangeResult]:
        if policy is not None:
            change_policy(recorder, policy)
        return add_all(recorder, new)

    return recorded(memory_id, record, actor=actor)


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

    def record(recorder: Recorder) -> ChangeResult:
        advice = "set a policy before replacing its messages"
        policy = required_policy(memory_id, recorder.policy, advice)
        arrivals = counted_entries(recorder.memory, messages)
        return recorder.record(refill(recorder.window, arrivals, policy))

    return prepared(memory_id, record, actor=actor, expected_version=expected_version)


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Clear the window, but not the history. Raises MemoryNotFound, VersionConflict."""

    def record(recorder: Recorder) -> ChangeResult:
        return recorder.record(clear(recorder.window, recorder.policy))

    return recorded(memory_id, record, actor=actor, expected_version=expected_version)
