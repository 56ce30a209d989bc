"""Measure the bytes that a message takes in the database against the bytes of its payload."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from benchmarks.measuring import QUICK, Figure
from benchmarks.texts import texts

MESSAGES = 10_000 if QUICK else 100_000
EACH = 50
LIMIT = 4.5

# The statements that compact a database's files, and that list the bytes of its parts.
_ORDER = {"sqlite": "PRAGMA wal_checkpoint(TRUNCATE)", "postgresql": "VACUUM"}
_SIZES = {
    "sqlite": (
        "SELECT CASE WHEN name LIKE 'chatmemory_search%' "
        "THEN 'search' WHEN name LIKE 'sqlite_autoindex%' OR name LIKE '%stay\\_%' ESCAPE '\\' "
        "THEN 'indexes' ELSE name END, SUM(pgsize) FROM dbstat GROUP BY 1 ORDER BY 2 DESC"
    ),
    "postgresql": (
        "SELECT CASE WHEN relname = 'chatmemory_search_message' THEN 'search' WHEN relkind = 'i' "
        "THEN 'indexes' ELSE relname END, SUM(pg_table_size(oid)) FROM pg_class WHERE relkind IN "
        "('r', 'i') AND relnamespace = 'public'::regnamespace GROUP BY 1 ORDER BY 2 DESC"
    ),
}


def figures(folder: str) -> Iterator[Figure]:
    from django.db import connection

    from chatmemory import TokenWindow, UserMessage, services
    from chatmemory.models import Message

    lines = texts()
    for n in range(MESSAGES // EACH):
        messages = [UserMessage(text) for text in islice(lines, EACH)]
        services.import_conversation(f"c{n}", messages, TokenWindow(4_000))
    payload = sum(len(row.payload) for row in Message.objects.iterator())
    with connection.cursor() as cursor:
        cursor.execute(_ORDER[connection.vendor])
        cursor.execute(_SIZES[connection.vendor])
        sizes = cursor.fetchall()
    whole = float(sum(size for _, size in sizes))
    where = ", ".join(f"{name} {size / payload:.2f}" for name, size in sizes[:6])
    yield Figure(f"bytes a message at {MESSAGES:,} messages", whole / payload, LIMIT, where)
