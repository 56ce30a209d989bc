"""Services that create, change, label and branch conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from chatmemory import database
from chatmemory.core.exceptions import ChatMemoryError, MemoryExists
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy, load_of
from chatmemory.core.window import Totals
from chatmemory.ledger.adding import required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import change_policy
from chatmemory.ledger.entries import read_message
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.stored_window import stays_at
from chatmemory.models import Memory, Message
from chatmemory.services import audit
from chatmemory.services.erasure import delete
from chatmemory.services.locking import check_deleted, locked, unsaved_memory
from chatmemory.services.messages import change_and_add, set_messages
from chatmemory.services.slices import add_slices, is_long, set_stored
from chatmemory.services.validation import ID_LENGTH, check_id, check_labels, check_policy


def create(
    memory_id: str,
    policy: Policy | None,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
) -> Memory:
    """Create an empty conversation without a step.

    Raises MemoryExists, DeletionUnfinished, InvalidValue.
    """
    check_id(memory_id)
    check_policy(policy)
    given = check_labels(labels or {})
    with database.atomic():
        memory = unsaved_memory(memory_id, given)
        memory.policy, memory.window_load = policy, load_of(policy, Totals())
        created = Memory.objects.bulk_create([memory], ignore_conflicts=True)
        check_deleted(memory_id)
        stored: Memory = Memory.objects.select_for_update().get(pk=memory_id)
        if stored.created_at != created[0].created_at or stored.last_step:
            raise MemoryExists(f"a conversation with the id {memory_id!r} already exists")
        audit.log(f"create {memory_id!r}", action="create", actor=actor, memory_id=memory_id)
    return stored


def change(
    memory_id: str,
    *,
    policy: Policy | None = None,
    labels: Mapping[str, str] | None = None,
    actor: str = "",
    expected_version: int | None = None,
) -> Memory:
    """Change the policy, the labels or both, one step each; an equal value is not a step.

    A lower limit evicts nothing by itself: the messages over it are hidden until the next add
    evicts them, and a higher limit before that shows them again (LangChain4j trims on reading).
    Raises MemoryNotFound, InvalidValue, UnknownEstimator, VersionConflict.
    """
    check_policy(policy)
    new_labels = None if labels is None else check_labels(labels)
    with locked(memory_id, actor=actor, expected_version=expected_version) as recorder:
        if policy is not None:
            change_policy(recorder, policy)
        if new_labels is not None:
            recorder.set_labels(new_labels)
        return recorder.memory


def label(memory_ids: Iterable[str], name: str, value: str, actor: str = "") -> None:
    """Add a label to some conversations, in one transaction.

    Raises MemoryNotFound, InvalidValue.
    """
    with database.atomic():
        for memory_id in memory_ids:
            with locked(memory_id, actor=actor) as recorder:
                recorder.set_labels(check_labels({**recorder.memory.labels, name: value}))


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
    window = [read_message(stay.message) for stay in stays_at(step).select_related("message")]
    label = {"from": f"{memory_id} step {step.n}"[:ID_LENGTH]}
    with database.atomic():
        create(new_id, step.policy or in_force, label, actor)
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


def _end_branch(
    new_id: str,
    window: Sequence[ChatMessage],
    messages: Iterable[ChatMessage],
    policy: Policy,
    actor: str,
) -> list[ChangeResult]:
    """Give a branch that has its history the window of its source, and add what is new."""
    set_stored(new_id, None)
    set_messages(new_id, window, actor=actor)
    return change_and_add(new_id, messages, policy=policy, actor=actor)
