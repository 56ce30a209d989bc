"""Adding, replacing and clearing what a conversation's memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import transaction

from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import clear, refill
from chatmemory.ledger.adding import add_all, required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import change_policy, count_ahead, counted_entries
from chatmemory.ledger.redaction import with_stored_tokens
from chatmemory.services.locking import locked
from chatmemory.services.validation import check_client_id, check_id, check_policy


def add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> list[ChangeResult]:
    """Add messages one by one, each a step of its own; all are stored or none.

    A message whose client id is known already, with the same content, is answered with its seq and
    no step. Raises MemoryNotFound, PolicyRequired (the client decides this window),
    PolicyUnavailable, VersionConflict, DuplicateClientId, UnstorableText, UnknownEstimator.
    """
    new = [each if isinstance(each, NewMessage) else NewMessage(each) for each in messages]
    for each in new:
        if each.client_id is not None:
            check_client_id(each.client_id)
    count_ahead(check_id(memory_id), [each.message for each in new])
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return add_all(recorder, new)


def change_and_add(
    memory_id: str,
    messages: Iterable[ChatMessage | NewMessage],
    *,
    policy: Policy | None,
    actor: str = "",
) -> list[ChangeResult]:
    """Change the policy, if one is given, and add, in one transaction. Raises as `add` does."""
    check_policy(policy)
    with transaction.atomic():
        if policy is not None:
            with locked(memory_id, actor=actor) as recorder:
                change_policy(recorder, policy)
        return add(memory_id, messages, actor=actor)


def set_messages(
    memory_id: str,
    messages: Sequence[ChatMessage],
    *,
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Replace the window; the policy trims what exceeds it. Raises as `add` does."""
    count_ahead(check_id(memory_id), messages)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        policy = required_policy(recorder.memory)
        arrivals = counted_entries(recorder.memory, messages)
        arrivals = with_stored_tokens(recorder.memory, recorder.window, arrivals)
        return recorder.record(refill(recorder.window, arrivals, policy))


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Empty the window; the history stays. Raises MemoryNotFound, VersionConflict."""
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return recorder.record(clear(recorder.window, recorder.memory.policy))
