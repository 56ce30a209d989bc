"""The transaction around every write: lock the conversation, record, write, announce.

The lock is the conversation's row on PostgreSQL, the database's one writer on SQLite (BEGIN
IMMEDIATE, by the connection's `transaction_mode`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.db import connection, transaction
from django.utils import timezone

from chatmemory.conf import configuration
from chatmemory.core.exceptions import MemoryNotFound, VersionConflict
from chatmemory.core.policies import can_decide
from chatmemory.ledger.recorder import Recorder
from chatmemory.models import Memory
from chatmemory.services import audit
from chatmemory.services.validation import check_id
from chatmemory.signals import memory_changed

CHANNEL = "chatmemory"


@contextmanager
def locked(
    memory_id: str,
    *,
    actor: str,
    create: bool = False,
    expected_version: int | None = None,
) -> Iterator[Recorder]:
    """Lock a conversation until the block ends, then write what the block recorded.

    With `create` an unknown id is created, with no policy. Raises InvalidValue for a bad id,
    MemoryNotFound, VersionConflict.
    """
    check_id(memory_id)
    with transaction.atomic():
        if create:
            Memory.objects.bulk_create([unsaved_memory(memory_id)], ignore_conflicts=True)
        recorder = Recorder(lock_memory(memory_id, expected_version), actor)
        yield recorder
        if recorder.flush():
            _log_steps(recorder, actor)
            # The change is made: a receiver that fails is logged, and cannot undo it.
            transaction.on_commit(partial(_send_signal, recorder, actor), robust=True)
            transaction.on_commit(partial(_notify_followers, memory_id), robust=True)


def lock_memory(memory_id: str, expected_version: int | None = None) -> Memory:
    """Lock a row until the transaction ends. Raises MemoryNotFound, VersionConflict."""
    memory: Memory | None = Memory.objects.select_for_update().filter(pk=memory_id).first()
    if memory is None:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    if expected_version is not None and memory.version != expected_version:
        raise VersionConflict(memory_id, memory.version, expected_version)
    return memory


def unsaved_memory(memory_id: str) -> Memory:
    """The row of a new conversation without a policy."""
    now = timezone.now()
    return Memory(
        id=memory_id,
        policy_estimator=configuration().ESTIMATOR,
        created_at=now,
        updated_at=now,
    )


def _log_steps(recorder: Recorder, actor: str) -> None:
    if not recorder.results:
        return
    memory_id, steps = recorder.memory.pk, [result.step or 0 for result in recorder.results]
    audit.log(
        f"steps {steps[0]} to {steps[-1]} of {memory_id!r}",
        action=",".join(sorted({result.kind for result in recorder.results})),
        actor=actor,
        memory_id=memory_id,
        first_step=steps[0],
        last_step=steps[-1],
    )


def _send_signal(recorder: Recorder, actor: str) -> None:
    memory = recorder.memory
    policy, load = memory.policy, memory.window_load
    memory_changed.send_robust(
        Memory,
        memory_id=memory.pk,
        actor=actor,
        results=tuple(recorder.results),
        fill=load / policy.limit if can_decide(policy) and load is not None else None,
    )


def _notify_followers(memory_id: str) -> None:
    """Wake the followers (see `live`). Inside the transaction, NOTIFY would serialise commits."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, memory_id])
