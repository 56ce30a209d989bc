"""Single conversations as they are now, their branches, and the state of the database.

A branch belongs to the conversation that had the source's id when the branch was saved, not to a
later one with the same id: deleting a conversation leaves its branches, which may be on other
nodes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from chatmemory import database
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Memory
from chatmemory.reading.rows import MemoryRow, memory_row
from chatmemory.reading.windows import StoredState
from chatmemory.windows.policies import Policy


def memory(memory_id: str) -> MemoryRow:
    """Return a conversation. Raises MemoryNotFound."""
    return memory_row(find_memory(memory_id))


def policy(memory_id: str, at: int | None = None) -> Policy | None:
    """Return the policy in force at step `at`, or now. Raises MemoryNotFound, StepNotFound."""
    return StoredState.of(memory_id, at).policy


def memories(memory_ids: Sequence[str]) -> list[MemoryRow]:
    """Return the conversations with these ids in the given order, without unknown ids."""
    rows = {row.pk: memory_row(row) for row in Memory.objects.filter(id__in=memory_ids)}
    return [rows[memory_id] for memory_id in memory_ids if memory_id in rows]


def any_memory() -> bool:
    """Return whether there is any conversation."""
    found: bool = Memory.objects.exists()
    return found


def is_writable() -> bool:
    """Return whether the database can be written: not so a replica or a read-only file."""
    connection = database.connection()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW transaction_read_only")
            return bool(cursor.fetchone()[0] == "off")
        cursor.execute("SELECT query_only, file FROM pragma_query_only, pragma_database_list")
        is_read_only, file = cursor.fetchone()
    return not is_read_only and (not file or _may_write(Path(file)))


def free_disk_space() -> int | None:
    """Return the free bytes of the disk that holds a SQLite database; None for other databases."""
    connection = database.connection()
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT file FROM pragma_database_list")
        (file,) = cursor.fetchone()
    return shutil.disk_usage(Path(file).parent).free if file else None


def _may_write(file: Path) -> bool:
    """Return whether a file and its folder, which has the write-ahead log, can be written."""
    return all(os.access(path, os.W_OK, effective_ids=True) for path in (file, file.parent))


# Branches, which copied the messages of another conversation up to a step


def branches(memory_ids: Iterable[str]) -> list[str]:
    """Return the ids of the branches of some conversations, and of their branches in turn."""
    ids = list(dict.fromkeys(memory_ids))
    rows = Memory.objects.filter(id__in=ids)
    found = sources = dict(rows.values_list("id", "created_at"))
    while sources:
        rows = Memory.objects.filter(branched_from__in=list(sources)).exclude(id__in=list(found))
        saved = rows.order_by("id").values_list("id", "branched_from", "created_at")
        sources = {branch: at for branch, source, at in saved if at >= sources[source]}
        found = found | sources
    return [memory_id for memory_id in found if memory_id not in ids]


def source_of(branch: Memory) -> Memory | None:
    """Return the conversation that a branch was saved from, unless it is deleted."""
    rows = Memory.objects.filter(pk=branch.branched_from, created_at__lte=branch.created_at)
    return next(iter(rows), None) if branch.branched_from else None
