"""The transaction of every write: lock the conversation, record, write, notify.

On PostgreSQL the lock is the conversation's row (SELECT FOR UPDATE), so that conversations do not
block each other. SQLite has one writer per database: a transaction of `chatmemory.database` takes
that lock before the first read. Otherwise two transactions could read the same window, and SQLite
would reject the second one when it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.utils import timezone

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.core.exceptions import (
    DeletionUnfinished,
    ImportUnfinished,
    MemoryExists,
    MemoryNotFound,
    VersionConflict,
)
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide, load_of
from chatmemory.core.window import Totals
from chatmemory.ledger import chain, statements
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.statements import Compiled
from chatmemory.ledger.writes import Write, execute
from chatmemory.models import AuditEntry, Memory
from chatmemory.services import audit
from chatmemory.services.validation import check_change
from chatmemory.signals import memory_changed

CHANNEL = "chatmemory"

DECIDED_UNDER_LOCK = 10_000  # messages of a window; what evicts so many takes half a second

Recorded = TypeVar("Recorded")


@dataclass(frozen=True)
class Creation:
    """What a conversation begins with that is created by its first change."""

    memory_id: str
    policy: Policy | None = None

    @cached_property
    def row(self) -> Memory:
        """The row of the new conversation, not yet saved."""
        return unsaved_memory(self.memory_id, policy=self.policy)

    def has_made(self, memory: Memory) -> bool:
        """Return whether a row is the new one, and not one that was stored before."""
        return "row" in vars(self) and memory.created_at == self.row.created_at


@Compiled
def _locked_row(memory_id: str) -> QuerySet[Memory]:
    row: QuerySet[Memory] = Memory.objects.select_for_update().filter(pk=memory_id)
    return row


@Compiled
def _deleted_row(memory_id: str) -> QuerySet[Memory, Any]:
    row: QuerySet[Memory] = Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False)
    return row.values_list("pk", named=True)


@Compiled
def _newest_deletion(memory_id: str, action: str) -> QuerySet[AuditEntry, Any]:
    deleted = AuditEntry.objects.filter(memory_id=memory_id, action=action)
    return deleted.order_by("-at", "-pk").values_list("detail", named=True)[:1]


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
    for an invalid id, actor or version, MemoryNotFound, VersionConflict, ImportUnfinished,
    DeletionUnfinished.
    """
    check_change(memory_id, actor, expected_version)
    with database.atomic():
        memory = _locked(memory_id, create, expected_version, imported)
        recorder = _recorder(memory, create, actor)
        yield recorder
        _write(recorder, recorder.writes(), actor)


def recorded(
    memory_id: str,
    record: Callable[[Recorder], Recorded],
    *,
    actor: str,
    create: Creation | None = None,
    expected_version: int | None = None,
) -> Recorded:
    """Return what `record` does, and write what it recorded; see `prepared` for long windows."""
    with locked(
        memory_id, actor=actor, create=create, expected_version=expected_version
    ) as recorder:
        if recorder.memory.window_count <= DECIDED_UNDER_LOCK:
            return record(recorder)
    return prepared(
        memory_id, record, actor=actor, create=create, expected_version=expected_version
    )


def prepared(
    memory_id: str,
    record: Callable[[Recorder], Recorded],
    *,
    actor: str,
    create: Creation | None = None,
    expected_version: int | None = None,
    imported: int | None = None,
) -> Recorded:
    """Return what `record` does, and hold the lock only while what it recorded is written.

    It is called before the conversation is locked, and again under the lock if the conversation was
    changed meanwhile, so it must do nothing but read and record. Raises the exceptions of `locked`.
    """
    check_change(memory_id, actor, expected_version)
    with one_snapshot():
        seen = _found(memory_id, create, expected_version, imported)
        recorder = _recorder(copy(seen), create, actor)
        result, writes = record(recorder), recorder.writes()
    with database.atomic():
        memory = _locked(memory_id, create, expected_version, imported)
        if _columns_of(memory) != _columns_of(seen):
            recorder = _recorder(memory, create, actor)
            result, writes = record(recorder), recorder.writes()
        _write(recorder, writes, actor)
    return result


def _recorder(memory: Memory, create: Creation | None, actor: str) -> Recorder:
    is_new = create is not None and create.has_made(memory)
    return Recorder(memory, actor, is_new=is_new)


def _found(
    memory_id: str,
    create: Creation | None,
    expected_version: int | None,
    imported: int | None,
) -> Memory:
    """Return a row without locking it, or the one that is to be created."""
    try:
        memory = find_memory(memory_id)
    except MemoryNotFound:
        if create is None:
            raise
        return create.row
    _check_version(memory, expected_version)
    check_imported(memory, imported)
    return memory


def _columns_of(memory: Memory) -> list[Any]:
    return [getattr(memory, field.attname) for field in Memory._meta.concrete_fields]


def _locked(
    memory_id: str,
    create: Creation | None,
    expected_version: int | None,
    imported: int | None = None,
) -> Memory:
    """Return a row, locked until the transaction ends; see `locked`."""
    if create is None:
        memory = lock_memory(memory_id, expected_version)
    else:
        memory = _lock_or_create(create, expected_version)
    check_imported(memory, imported)
    return memory


def _write(recorder: Recorder, writes: Sequence[Write], actor: str) -> None:
    """Write what was recorded on a locked conversation, and tell of it."""
    if writes:
        execute(writes)
        _log_steps(recorder, actor)
        database.on_commit(lambda: _announce(recorder, actor))


def lock_memory(memory_id: str, expected_version: int | None = None) -> Memory:
    """Lock a row until the transaction ends. Raises MemoryNotFound, VersionConflict.

    The version is compared under the lock; before it, another writer could still change it.
    """
    for memory in _locked_row(memory_id):
        _check_version(memory, expected_version)
        return memory
    raise MemoryNotFound(f"no conversation has the id {memory_id!r}")


def _lock_or_create(create: Creation, expected_version: int | None) -> Memory:
    """Lock a row, which is created first if there is none. Raises VersionConflict."""
    try:
        return lock_memory(create.memory_id, expected_version)
    except MemoryNotFound:
        return lock_or_insert(create.row, expected_version)


def insert(row: Memory) -> Memory:
    """Insert the row of a new conversation, which is then locked. Raises MemoryExists.

    A transaction that holds an existing row is not waited for.
    """
    stored = _inserted(row, partial(find_memory, row.pk))
    if stored.created_at != row.created_at or stored.last_step:
        raise MemoryExists(f"a conversation with the id {row.pk!r} already exists")
    return stored


def lock_or_insert(row: Memory, expected_version: int | None = None) -> Memory:
    """Lock the row of an id, which is inserted if there is none. Raises VersionConflict.

    Two requests may create the id at once: the second insert is ignored, and the lock puts the
    requests in order.
    """
    return _inserted(row, partial(lock_memory, row.pk, expected_version))


def _inserted(row: Memory, read: Callable[[], Memory]) -> Memory:
    """Insert a row if there is none, and return the one that is read then. If it is deleted before
    it is read, it is inserted after all.
    """
    while True:
        execute([statements.insertion_if_new(row)])
        check_deleted(row.pk)
        with suppress(MemoryNotFound):
            return read()


def _check_version(memory: Memory, expected: int | None) -> None:
    """Raise VersionConflict if the conversation is at another version than the expected one."""
    if expected is not None and memory.version != expected:
        raise VersionConflict(memory.pk, memory.version, expected)


def check_imported(memory: Memory, imported: int | None = None) -> None:
    """Raise ImportUnfinished if another part of an import is stored than the expected one."""
    if memory.imported != imported:
        again = (
            "import the same file with the same policy"
            if memory.branched_from is None
            else ("make the same branch")
        )
        raise ImportUnfinished(
            f"the import of {memory.pk!r} has not ended: wait for it, or {again} again"
        )


def check_deleted(memory_id: str) -> None:
    """Raise DeletionUnfinished if rows of a deleted conversation still have this id."""
    if _deleted_row(memory_id):
        raise DeletionUnfinished(
            f"a conversation with the id {memory_id!r} is being deleted: try again in a moment"
        )


def _previous_head(memory_id: str) -> bytes | None:
    """Return the head of the conversation with this id that was deleted last, or None."""
    deletions = _newest_deletion(memory_id, str(AuditEntry.Action.DELETE))
    head = next((row.detail.get("head") for row in deletions), None)
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


def _announce(recorder: Recorder, actor: str) -> None:
    """Send the signal and wake followers, after the commit, so that they see the change."""
    memory = recorder.memory
    policy, load = recorder.policy, memory.window_load
    memory_changed.send_robust(
        Memory,
        memory_id=memory.pk,
        actor=actor,
        results=tuple(recorder.results),
        fill=load / policy.limit if can_decide(policy) and load is not None else None,
    )
    notify_followers(memory.pk)


def notify_followers(memory_id: str) -> None:
    """Wake the followers (see `live`) on PostgreSQL.

    Call it after the commit: NOTIFY within a transaction takes a global lock while it commits.
    """
    connection = database.connection()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, memory_id])
