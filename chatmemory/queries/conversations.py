"""One conversation as it is now, and the database it lies in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from django.db import connection

from chatmemory.core.exceptions import (
    MemoryNotFound,
    StepNotFound,
)
from chatmemory.models import Memory, Step
from chatmemory.queries.rows import MemoryRow, memory_row


def memory(memory_id: str) -> MemoryRow:
    """Raises MemoryNotFound."""
    return memory_row(stored_memory(memory_id))


def memories(memory_ids: Sequence[str]) -> list[MemoryRow]:
    """Those of these conversations that there are, in the order given."""
    rows = {row.pk: memory_row(row) for row in Memory.objects.filter(id__in=memory_ids)}
    return [rows[memory_id] for memory_id in memory_ids if memory_id in rows]


def any_memory() -> bool:
    """Whether there is any conversation."""
    return Memory.objects.exists()


def is_writable() -> bool:
    """Whether the database takes writes now: a replica or a read-only file does not."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW transaction_read_only")
            return bool(cursor.fetchone()[0] == "off")
        cursor.execute("SELECT query_only, file FROM pragma_query_only, pragma_database_list")
        only_reads, file = cursor.fetchone()
    return not only_reads and (not file or _may_write(Path(file)))


def _may_write(file: Path) -> bool:
    """The file and, for the write-ahead log beside it, its folder."""
    return all(os.access(each, os.W_OK, effective_ids=True) for each in (file, file.parent))


def stored_memory(memory_id: str) -> Memory:
    row: Memory | None = Memory.objects.filter(pk=memory_id).first()
    if row is None:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    return row


def stored_step(memory_id: str, n: int) -> Step:
    row = Step.objects.filter(memory_id=memory_id, n=n).first()
    if row is None:
        known = stored_memory(memory_id).last_step
        raise StepNotFound(f"{memory_id!r} has steps 0 to {known}, and no step {n}")
    return row
