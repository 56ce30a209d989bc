"""One conversation as it is now, and the database it lies in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from django.db import connection

from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Memory
from chatmemory.queries.rows import MemoryRow, memory_row


def memory(memory_id: str) -> MemoryRow:
    """Raises MemoryNotFound."""
    return memory_row(find_memory(memory_id))


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
