"""The transaction of every write: lock the conversation, record the change, write, notify.

- On PostgreSQL, the lock is the conversation's row (SELECT FOR UPDATE), so that conversations do
  not block each other.
- On SQLite, the lock is the whole database. It is taken before the first read. SQLite would refuse
  a later lock if another transaction had written after this read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.exceptions import (
    DeletionUnfinished,
    ImportUnfinished,
    MemoryExists,
    MemoryNotFound,
    VersionConflict,
)
from chatmemory.ledger import sql
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.recorder import Recorder, is_unchanged
from chatmemory.ledger.validation import check_change, check_ids
from chatmemory.messages.estimators import load, must_load
from chatmemory.models import AuditEntry, Memory
from chatmemory.room import Recorded
from chatmemory.rooms import seal
from chatmemory.signals import memory_changed
from chatmemory.snapshots import one_snapshot
from chatmemory.tables import SqlRow
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, load_of
from chatmemory.windows.window import Totals

CHANNEL = "chatmemory"
TOKENS_OF_A_ROW = 60
PLANNED_AT_MOST = 5
MANY = 500  # messages; a longer list is compared before the lock

_audit_log = logging.getLogger("chatmemory.audit")


@contextmanager
def locked(
    memory_id: str,
    *,
    actor: str,
    create: Callable[[], Memory] | None = None,
    expected_version: int | None = None,
    note: str = "",
    counts: bool = False,
) -> Iterator[Recorder]:
    """Lock a conversation and yield its recorder. The recorded changes are written at the end of
    the `with` block.

    - `create`: a function that returns the row to insert for an unknown id. Without `create`,
      MemoryNotFound is raised.
    - `note`: the note of all steps.
    - `counts`: whether the `with` block counts tokens. Then the encoding of the estimator is loaded
      first, while nothing is locked.

    Raises VersionConflict, ImportUnfinished, DeletionUnfinished, and InvalidValue for an invalid
    id, actor or version.
    """
    check_change(memory_id, actor, expected_version)
    while True:
        with database.atomic(), database.cursor() as cursor:
            memory, is_new = _lock_or_create(cursor, memory_id, create, expected_version)
            if is_new or not counts or not must_load(memory.policy_estimator):
                check_imported(memory)
                recorder = Recorder(memory, actor, is_new=is_new, note=note, cursor=cursor)
                yield recorder
                _write(recorder, actor, cursor)
                return
        load(memory.policy_estimator)


@contextmanager
def locked_new(
    memory_id: str, create: Callable[[], Memory], *, actor: str, note: str
) -> Iterator[Recorder]:
    """Insert the row of a new conversation and yield its recorder. The recorded changes are written
    at the end of the `with` block.

    `create` returns the unsaved row. Raises MemoryExists for a known id, without waiting for the
    lock of that conversation. Raises InvalidValue, DeletionUnfinished.
    """
    check_change(memory_id, actor, None)
    with database.atomic(), database.cursor() as cursor:
        row = create()
        while not sql.insert_if_new(row, cursor):
            check_deleted(memory_id)
            if sql.read_memory(memory_id, cursor=cursor):
                raise MemoryExists(f"a conversation with the id {memory_id!r} already exists")
        recorder = Recorder(row, actor, is_new=True, note=note, cursor=cursor)
        yield recorder
        _write(recorder, actor, cursor)


@contextmanager
def locked_import(memory_id: str, stored: int, *, actor: str, note: str) -> Iterator[Recorder]:
    """Lock a conversation for the next part of its import, and yield its recorder. The recorded
    changes are written at the end of the `with` block.

    `stored` is the number of messages that earlier parts have stored. Raises ImportUnfinished if
    the row has another number, because another process has continued the import. Raises
    MemoryNotFound, InvalidValue.
    """
    check_change(memory_id, actor, None)
    with database.atomic(), database.cursor() as cursor:
        memory = lock_memory(memory_id, cursor=cursor)
        check_imported(memory, stored)
        recorder = Recorder(memory, actor, note=note, cursor=cursor)
        yield recorder
        _write(recorder, actor, cursor)


def _write(recorder: Recorder, actor: str, cursor: CursorWrapper) -> None:
    """Write the rows of a recorder, and announce the change once it is committed."""
    if recorder.write(cursor):
        database.on_commit(_announce, recorder, actor)


Result = TypeVar("Result")


class Prepared(NamedTuple, Generic[Result]):
    """A change that was computed without a lock.

    `recorder` has the new rows, which are not written yet. `before` is the conversation's row
    before the change.
    """

    recorder: Recorder
    result: Result
    before: Memory


@dataclass(frozen=True)
class Planned(Generic[Result]):
    """A change of a conversation that is not written yet.

    - `change`: the function that makes the change, given a recorder.
    - `create`: a function that returns the row to insert for an unknown id.
    - `derives`: whether the change must be computed without the lock, because it may take long.
    - `prepared`: the change as it was computed without a lock. None if it was not computed yet.
    """

    memory_id: str
    change: Callable[[Recorder], Result]
    actor: str
    note: str = ""
    create: Callable[[], Memory] | None = None
    derives: bool = True
    expected_version: int | None = None
    prepared: Prepared[Result] | None = None

    def write(self) -> Result:
        """Write the change under the lock, and return its result.

        If the change is prepared and the conversation has not changed since, the prepared rows are
        written. Otherwise the change is computed now: under the lock or, with `derives`, before the
        lock is taken.

        With `derives`, other writers can change the conversation between the computation and the
        lock. The change is then computed again. Raises VersionConflict if this happens at every
        attempt, and the exceptions of `locked` and of `change`.
        """
        plan = self
        for attempt in range(PLANNED_AT_MOST):
            if attempt:
                plan = plan.again()
            with database.atomic(), database.cursor() as cursor:
                create = self.create and plan.new_row
                memory, is_new = _lock_or_create(
                    cursor, self.memory_id, create, self.expected_version
                )
                check_imported(memory)
                if plan.prepared is not None and is_unchanged(memory, plan.prepared.before):
                    recorder, result = plan.prepared.recorder, plan.prepared.result
                elif self.derives:
                    continue
                else:
                    recorder = Recorder(
                        memory, self.actor, is_new=is_new, note=self.note, cursor=cursor
                    )
                    result = self.change(recorder)
                _write(recorder, self.actor, cursor)
                return result
        assert plan.prepared is not None
        raise VersionConflict(self.memory_id, memory.version, plan.prepared.before.version)

    def again(self) -> Planned[Result]:
        """Compute the change from the current state of the conversation, and return a copy of the
        plan with the result as `prepared`. Nothing is locked or written.

        Raises MemoryNotFound, VersionConflict, ImportUnfinished and the exceptions of `change`.
        """
        with one_snapshot():
            known = sql.read_memory(self.memory_id)
            memory = known or (self.create and self.create()) or find_memory(self.memory_id)
            _check_version(memory, self.expected_version)
            check_imported(memory)
            recorder = Recorder(memory, self.actor, is_new=known is None, note=self.note)
            before = copy(memory)
            return replace(self, prepared=Prepared(recorder, self.change(recorder), before))

    def new_row(self) -> Memory:
        """Return the row to insert for a new conversation.

        If the change was computed before, this is the row from that computation. If nothing was
        computed, or a conversation with this id was deleted meanwhile, `create` makes a row.
        """
        assert self.create is not None
        row = self.create()
        if self.prepared and self.prepared.before.previous_head == row.previous_head:
            return self.prepared.before
        return row


def planned(
    memory_id: str,
    change: Callable[[Recorder], Result],
    *,
    actor: str,
    note: str = "",
    create: Callable[[], Memory] | None = None,
    messages: int | None = None,
    expected_version: int | None = None,
) -> Planned[Result]:
    """Plan a change of a conversation, so that other writers wait only briefly. The method `write`
    of the plan stores the change.

    `messages` is the number of messages that the change handles, or None if unknown. A change of
    fewer than `MANY` messages is computed later, under the lock. Any other change is computed now,
    without a lock. Raises InvalidValue and the exceptions of `Planned.again`.
    """
    check_change(memory_id, actor, expected_version)
    derives = messages is None
    plan = Planned(memory_id, change, actor, note, create, derives, expected_version)
    return plan.again() if messages is None or messages >= MANY else plan


def lock_memory(
    memory_id: str, expected_version: int | None = None, cursor: CursorWrapper | None = None
) -> Memory:
    """Lock the row of a conversation until the transaction ends, and return the row.

    Raises MemoryNotFound. Raises VersionConflict if the row has another version than expected.
    """
    memory = sql.read_memory(memory_id, lock=True, cursor=cursor)
    if memory is None:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    _check_version(memory, expected_version)
    return memory


def unless_changing(memory_id: str, *columns: str) -> SqlRow | None:
    """Lock the row of a conversation until the transaction ends, and return these columns. Returns
    None, without waiting, if the row is deleted or locked by another writer.

    The function takes one id, because Citus cannot lock rows of several conversations in one
    statement.
    """
    row = Memory.objects.select_for_update(skip_locked=True).filter(id=memory_id)
    return next(iter(row.values_list(*columns)), None)


def _check_version(memory: Memory, expected: int | None) -> None:
    if expected is not None and memory.version != expected:
        raise VersionConflict(memory.pk, memory.version, expected)


def _lock_or_create(
    cursor: CursorWrapper,
    memory_id: str,
    create: Callable[[], Memory] | None,
    expected_version: int | None,
) -> tuple[Memory, bool]:
    """Return the locked row of a conversation, and whether it is new. Raises the exceptions of
    `locked`.
    """
    try:
        return lock_memory(memory_id, expected_version, cursor), False
    except MemoryNotFound:
        if create is None:
            raise
    # Two requests may create the id at once: the second insert is ignored. If the row is deleted
    # before it is read, it is inserted after all.
    row = create()
    while not sql.insert_if_new(row, cursor):
        check_deleted(memory_id)
        with suppress(MemoryNotFound):
            return lock_memory(memory_id, expected_version, cursor), False
    _check_version(row, expected_version)
    return row, True


def check_imported(memory: Memory, imported: int | None = None) -> None:
    """Raise ImportUnfinished if the conversation is being imported.

    A caller that continues the import gives `imported`: the number of messages stored so far. Then
    the error is raised unless the row has exactly this number.
    """
    if memory.imported != imported:
        again = (
            "import the same file with the same policy"
            if memory.branched_from is None
            else ("make the same branch")
        )
        raise ImportUnfinished(
            f"the import of the conversation {memory.pk!r} has not ended: wait until it ends, or "
            f"{again} again"
        )


def check_deleted(memory_id: str) -> None:
    """Raise DeletionUnfinished if a conversation with this id is still being deleted."""
    if Memory.with_deleted.filter(pk=memory_id, deleted_at__isnull=False).exists():
        raise DeletionUnfinished(
            f"a conversation with the id {memory_id!r} is being deleted: try again in a moment"
        )


def unsaved_memory(
    memory_id: str, labels: dict[str, str] | None = None, policy: Policy | None = None
) -> Memory:
    """Return the unsaved row of a new conversation. If a conversation with this id was deleted, the
    new row continues the chain of digests of the deleted one.
    """
    now = timezone.now()
    memory = Memory(
        id=memory_id,
        labels=labels or {},
        policy_estimator=configuration().ESTIMATOR,
        created_at=now,
        updated_at=now,
    )
    memory.policy, memory.window_load = policy, load_of(policy, Totals())
    head = sql.newest_detail(memory_id, AuditEntry.Action.DELETE).get("head")
    memory.previous_head = bytes.fromhex(head) if head else None
    seal(Recorded(memory))
    return memory


def audit(text: str, *, action: str, actor: str, **details: str | int) -> None:
    """Write `text` and the actor as a line to the audit log, after the commit. In a JSON log, the
    action, the actor and each of the `details` are fields.

    Neither `text` nor `details` may contain text of messages.
    """
    database.on_commit(lambda: _audit_now(text, action=action, actor=actor, **details))


def _audit_now(text: str, *, action: str, actor: str, **details: str | int) -> None:
    """Write a line to the audit log now. In JSON, each of the `details` is a field."""
    line = f"{text} by {actor or 'an unnamed actor'}"
    _audit_log.info(line, extra={"action": action, "actor": actor, **details})


def _log_steps(recorder: Recorder, actor: str) -> None:
    if not recorder.results or not _audit_log.isEnabledFor(logging.INFO):
        return
    memory_id, steps = recorder.memory.id, [result.step or 0 for result in recorder.results]
    _audit_now(
        f"steps {steps[0]} to {steps[-1]} of {memory_id!r}",
        action=",".join(sorted({result.kind for result in recorder.results})),
        actor=actor,
        memory_id=memory_id,
        first_step=steps[0],
        last_step=steps[-1],
        head=recorder.memory.head.hex(),
    )


def _announce(recorder: Recorder, actor: str) -> None:
    """After the commit, log the change, send the signal, and wake the live streams."""
    _log_steps(recorder, actor)
    memory = recorder.memory
    policy, load = recorder.policy, memory.window_load
    memory_changed.send_robust(
        Memory,
        memory_id=memory.id,
        actor=actor,
        results=tuple(recorder.results),
        fill=load / policy.limit if can_decide(policy) and load is not None else None,
    )
    notify_followers(memory.id)


def notify_followers(memory_id: str) -> None:
    """Tell live streams on PostgreSQL that a conversation has changed (see `live`).

    Call this function after the commit, because NOTIFY in a transaction takes a global lock.
    """
    connection = database.connection()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, memory_id])


# Several conversations, in short transactions


def row_count(memory: Memory) -> int:
    """Return about how many rows must be deleted with a conversation. Every 60 tokens of the
    history count as one more row, because SQLite removes text slowly from its search index.
    """
    rows = memory.last_seq + memory.last_stay + memory.last_step
    return rows + memory.history_tokens // TOKENS_OF_A_ROW


def sizes_of(memory_ids: Iterable[str]) -> dict[str, int]:
    """Return about how many rows must be deleted with each conversation, by id (see `row_count`).
    The ids are sorted.

    Writers that lock several conversations in this order cause no deadlock. Raises InvalidValue,
    MemoryNotFound.
    """
    ids = sorted(check_ids(memory_ids))
    columns = ("last_seq", "last_stay", "last_step", "history_tokens")
    found = {memory.pk: memory for memory in Memory.objects.filter(id__in=ids).only(*columns)}
    for memory_id in ids:
        if memory_id not in found:
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    return {memory_id: 1 + row_count(found[memory_id]) for memory_id in ids}
