"""Services that add, replace and clear the messages of a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory import database
from chatmemory.core.given import chat_message, chat_messages, several
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
    """Add messages, one step each, in one transaction.

    A message with a known client id and the same content is not added again; its result has its seq
    and no step. Raises MemoryNotFound, PolicyRequired (the client decides this window),
    PolicyUnavailable, VersionConflict, DuplicateClientId, InvalidMessage, UnstorableText,
    UnknownEstimator.
    """
    new = [
        item if isinstance(item, NewMessage) else NewMessage(chat_message(item))
        for item in several(messages)
    ]
    for item in new:
        if item.client_id is not None:
            check_client_id(item.client_id)
    count_ahead(check_id(memory_id), [item.message for item in new])
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return add_all(recorder, new)


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
    check_policy(policy)
    with database.atomic():
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
    """Replace the window and trim it by the policy. Raises the exceptions of `add`."""
    check_id(memory_id)
    messages = chat_messages(messages)
    count_ahead(memory_id, messages)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        policy = required_policy(recorder.memory)
        arrivals = counted_entries(recorder.memory, messages)
        arrivals = with_stored_tokens(recorder.memory, recorder.window, arrivals)
        return recorder.record(refill(recorder.window, arrivals, policy))


def clear_messages(
    memory_id: str, *, actor: str = "", expected_version: int | None = None
) -> ChangeResult:
    """Clear the window, but not the history. Raises MemoryNotFound, VersionConflict."""
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        return recorder.record(clear(recorder.window, recorder.memory.policy))
