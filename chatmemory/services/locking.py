"""The transaction of every write: lock the conversation, record, write, notify.

On PostgreSQL the lock is the conversation's row (SELECT FOR UPDATE), so that conversations do not
block each other. SQLite has one writer per database: a transaction of `chatmemory.database` takes
that lock before the first read. Otherwise two transactions could read the same window, and SQLite
would reject the second one when it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.core.exceptions import (
    DeletionUnfinished,
    ImportUnfinished,
    MemoryNotFound,
    VersionConflict,
)
from chatmemory.core.policies import Policy, can_decide, load_of
from chatmemory.core.window import Totals
from chatmemory.ledger import chain
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.statements import Compiled
from chatmemory.models import AuditEntry, Memory
from chatmemory.services import audit
from chatmemory.services.validation import check_id
from chatmemory.signals import memory_changed

CHANNEL = "chatmemory"


@dataclass(frozen=True)
class Creation:
    """What a conversation begins with that is created by its first change."""

    policy: Policy | None = None


@Compiled
def _locked_row(memory_id: str) -> QuerySet[Memory]:
    row: QuerySet[Memory] = Memory.objects.select_for_update().filter(pk=memory_id)
    return row


@contextmanager
def locked(
    memory_id: str,
    *,
    actor: str,
    create: Creation | None = None,
    expected_version: int | None = None,
    imported: int | None = None,
) -> Iterator[Recorder]:
    """Lock a conversation, and write at the end of the block what the block recorded.

    With `create`, an unknown id is created, under its policy. `imported` is how much of an import
    is stored: while one is unfinished, only its own next slice can be written. Raises InvalidValue
    for an invalid id, MemoryNotFound, VersionConflict, ImportUnfinished, DeletionUnfinished.
    """
    check_id(memory_id)
    with database.atomic():
        if create is None:
            memory = lock_memory(memory_id, expected_version)
        else:
            memory = _lock_or_create(memory_id, create, expected_version)
        if memory.imported != imported:
            raise ImportUnfinished(
                f"the import of {memory_id!r} has not ended: wait for it, or import the same file "
                "with the same policy again"
            )
        recorder = Recorder(memory, actor)
        yield recorder
        if recorder.flush():
            _log_steps(recorder, actor)
            # After the commit, so that receivers see the change.
            database.on_commit(lambda: _send_signal(recorder, actor))
            database.on_commit(lambda: _notify_followers(memory_id))


def lock_memory(memory_id: str, expected_version: int | None = None) -> Memory:
    """Lock a row until the transaction ends. Raises MemoryNotFound, VersionConflict.

    The version is compared under the lock; before it, another writer could still change it.
    """
    found = _locked_row(memory_id)
    if not found:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    memory = found[0]
    if expected_version is not None and memory.version != expected_version:
        raise VersionConflict(memory_id, memory.version, expected_version)
    return memory


def _lock_or_create(memory_id: str, create: Creation, expected_version: int | None) -> Memory:
    """Lock a row, which is created first if there is none. Raises VersionConflict."""
    try:
        return lock_memory(memory_id, expected_version)
    except MemoryNotFound:
        # Two requests may create the id at once: the second insert is ignored, and the lock puts
        # the requests in order.
        memory = unsaved_memory(memory_id, policy=create.policy)
        Memory.objects.bulk_create([memory], ignore_conflicts=True)
        check_deleted(memory_id)
        return lock_memory(memory_id, expected_version)


def check_deleted(memory_id: str) -> None:
    """Raise DeletionUnfinished if rows of a deleted conversation still have this id."""
    if Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False).exists():
        raise DeletionUnfinished(
            f"a conversation with the id {memory_id!r} is being deleted: try again in a moment"
        )


def _previous_head(memory_id: str) -> bytes | None:
    """Return the head of the conversation with this id that was deleted last, or None."""
    deleted = AuditEntry.objects.filter(memory_id=memory_id, action=AuditEntry.Action.DELETE)
    details = deleted.order_by("-at", "-pk").values_list("detail", flat=True)
    head = next((detail.get("head") for detail in details[:1]), None)
    return bytes.fromhex(head) if head else None


def unsaved_memory(
    memory_id: str, labels: dict[str, str] | None = None, policy: Policy | None = None
) -> Memory:
    """Return the unsaved row of a new conversation; its chain has begun."""
    now = timezone.now()
    memory = Memory(
        id=memory_id,
        labels=labels or {},
        policy_estimator=configuration().ESTIMATOR,
        created_at=now,
        updated_at=now,
    )
    memory.policy, memory.window_load = policy, load_of(policy, Totals())
    chain.begin(memory, _previous_head(memory_id))
    return memory


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
        head=recorder.memory.head.hex() if recorder.memory.head else "",
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
    """Wake the followers (see `live`) on PostgreSQL.

    Call it after the commit: NOTIFY within a transaction takes a global lock while it commits.
    """
    connection = database.connection()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, memory_id])
