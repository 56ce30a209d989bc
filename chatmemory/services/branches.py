"""Branches: new conversations with the history and the window of another one at a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from chatmemory import database
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.core.messages import ChatMessage
from chatmemory.core.options import Oversized
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.window import Totals
from chatmemory.ledger.adding import required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import change_policy
from chatmemory.ledger.entries import read_message, stay_entries
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.stored_window import stays_at
from chatmemory.models import Memory, Message, Stay
from chatmemory.services.erasure import delete
from chatmemory.services.locking import locked
from chatmemory.services.memories import create
from chatmemory.services.messages import change_and_add, set_messages
from chatmemory.services.slices import add_slices, is_long, set_stored
from chatmemory.services.validation import ID_LENGTH


def branch(
    memory_id: str,
    new_id: str,
    messages: Iterable[ChatMessage],
    *,
    at: int | None = None,
    policy: Policy | None = None,
    actor: str = "",
) -> list[ChangeResult]:
    """Create a conversation with the history and the window at step `at`, then add `messages`.

    The source is not changed. The new conversation has the source's id and step as the label
    `from`. A long history is added in several transactions; until the last, other changes of the
    branch raise ImportUnfinished. Raises the exceptions of `queries.simulate` and `create`.
    """
    source = find_memory(memory_id)
    step = find_step(source, source.last_step if at is None else at)
    in_force = policy or step.policy or required_policy(source)
    rows = Message.objects.filter(
        memory=source, seq__lte=step.last_seq, origin=Message.Origin.SAID
    ).order_by("seq")
    history = [NewMessage(read_message(row), said_at=row.said_at) for row in rows]
    window = list(stays_at(step).select_related("message"))
    label = {"from": f"{memory_id} step {step.n}"[:ID_LENGTH]}
    with database.atomic():
        create(new_id, _admitting(step.policy or in_force), label, actor)
        Memory.objects.filter(pk=new_id).update(branched_from=memory_id)
        set_stored(new_id, 0)
        if not is_long(history):
            add_slices(new_id, history, actor=actor)
            return _end_branch(new_id, window, messages, in_force, actor)
    try:
        add_slices(new_id, history, actor=actor)
        with database.atomic():
            return _end_branch(new_id, window, messages, in_force, actor)
    except ChatMemoryError:
        delete(new_id, actor=actor)
        raise


def _admitting(policy: Policy) -> Policy:
    """Return a policy that refuses nothing of a history that another one may have admitted."""
    return replace(policy, oversized=Oversized.EVICT) if policy.rejects_oversized else policy


def _end_branch(
    new_id: str,
    window: Sequence[Stay],
    messages: Iterable[ChatMessage],
    policy: Policy,
    actor: str,
) -> list[ChangeResult]:
    """Give a branch that has its history the window of its source, and add what is new."""
    set_stored(new_id, None)
    if any(stay.pinned for stay in window):
        _make_room(new_id, window, actor)
    set_messages(new_id, [read_message(stay.message) for stay in window], actor=actor)
    _pin(new_id, window, actor)
    return change_and_add(new_id, messages, policy=policy, actor=actor)


def _make_room(new_id: str, window: Sequence[Stay], actor: str) -> None:
    """Raise the limit so far that nothing leaves before it is pinned."""
    with locked(new_id, actor=actor) as recorder:
        policy = recorder.policy
        totals = Totals(len(window), sum(stay.tokens for stay in window))
        if can_decide(policy) and policy.is_exceeded_by(totals):
            change_policy(recorder, replace(policy, limit=policy.load(*totals)))


def _pin(new_id: str, window: Sequence[Stay], actor: str) -> None:
    """Pin what is pinned in the source."""
    positions = [position for position, stay in enumerate(window) if stay.pinned]
    if not positions:
        return
    with locked(new_id, actor=actor) as recorder:
        for position in positions:
            entry = list(stay_entries(recorder.window))[position]
            if not entry.pinned:
                recorder.pin(entry, pinned=True)
