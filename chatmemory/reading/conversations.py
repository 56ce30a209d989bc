"""Reads single conversations as they are now, and the state of the database."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from chatmemory import database
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Memory
from chatmemory.reading.rows import MemoryRow, memory_row
from chatmemory.reading.windows import StoredState
from chatmemory.windows.policies import Policy


def memory(memory_id: str) -> MemoryRow:
    """Return the current row of a conversation. Raises MemoryNotFound."""
    return memory_row(find_memory(memory_id))


def policy(memory_id: str, at: int | None = None) -> Policy | None:
    """Return the policy in force at step `at`, or now; None if the conversation has no policy.
    Raises MemoryNotFound, StepNotFound.
    """
    return StoredState.of(memory_id, at).policy


def memories(memory_ids: Sequence[str]) -> list[MemoryRow]:
    """Return the conversations with these ids in the given order. Unknown ids are left out."""
    rows = {row.pk: memory_row(row) for row in Memory.objects.filter(id__in=memory_ids)}
    return [rows[memory_id] for memory_id in memory_ids if memory_id in rows]


def any_memory() -> bool:
    """Return whether there is any conversation."""
    found: bool = Memory.objects.exists()
    return found


def is_writable() -> bool:
    """Return whether the database accepts writes. A replica or a read-only file does not."""
    connection = database.connection()
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW transaction_read_only")
            return bool(cursor.fetchone()[0] == "off")
        cursor.execute("SELECT query_only, file FROM pragma_query_only, pragma_database_list")
        is_read_only, file = cursor.fetchone()
    return not is_read_only and (not file or _may_write(Path(file)))


def free_disk_space() -> int | None:
    """Return the free bytes on the disk that has the SQLite database file. None for `:memory:`, and
    for any other kind of database.
    """
    connection = database.connection()
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT file FROM pragma_database_list")
        (file,) = cursor.fetchone()
    return shutil.disk_usage(Path(file).parent).free if file else None


def _may_write(file: Path) -> bool:
    """Return whether a database file and its folder can be written. The write-ahead log is in the
    folder.
    """
    return all(os.access(path, os.W_OK, effective_ids=True) for path in (file, file.parent))
