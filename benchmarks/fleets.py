"""Fleets of conversations for large databases.

A few hundred conversations are imported and verified, and the database copies them under other ids.
All rows are as adds would write them, except the digests, which contain the original ids.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from benchmarks.texts import texts

MODELS = 250
MESSAGES = 20  # in each conversation
KEPT = 10
WORDS = range(4, 30)  # in each message
COMMON, RARE, ABSENT = "delivery", "zanzibar", "harpsichord"
RARELY = 8  # conversations with the rare word
SINCE = timedelta(days=30)


def fleet(conversations: int) -> None:
    """Fill an empty database with conversations of 20 messages, active in the last 30 days."""
    from django.db import connection

    from chatmemory.models import Memory, Message, Stay, Step

    models = min(MODELS, conversations // 2)
    _import_models(models)
    columns = "id, branched_from AS model, labels, updated_at AS at"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE copies AS SELECT {columns} FROM chatmemory_memory LIMIT 0"
        )
        copies = list(_copies(conversations, models))
        cursor.executemany("INSERT INTO copies VALUES (%s, %s, %s, %s)", copies)
        for table in (Memory, Message, Stay, Step):
            cursor.execute(_copy(table))
        cursor.execute("DROP TABLE copies")


def _copies(conversations: int, models: int) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the id, the model, the labels and the time of each conversation."""
    from django.db import connection
    from django.utils import timezone

    chance, now = random.Random(1), timezone.now()
    apart = max(2, conversations // RARELY)
    for n in range(conversations):
        model = "rare" if n % apart == 1 else n % models
        labels = json.dumps({"team": chance.choice(("red", "blue")), "order": f"{n:06}"})
        at = connection.ops.adapt_datetimefield_value(now - SINCE * chance.random())
        yield f"chat-{100_000 + n}", f"model-{model}", labels, at


def _import_models(number: int) -> None:
    from chatmemory import AiMessage, MessageWindow, UserMessage, services
    from chatmemory.ledger.verification import verify

    chance, words = random.Random(2), " ".join(islice(texts(), 3_000)).split()

    def text() -> str:
        start = chance.randrange(len(words) - WORDS.stop)
        line = words[start : start + chance.choice(WORDS)]
        return " ".join([*line, f"about the {COMMON}"] if chance.random() < 0.4 else line)

    for name in (*range(number), "rare"):
        lines = [text() for _ in range(MESSAGES)]
        if name == "rare":
            lines[3] += f" {RARE} coast"
        messages = [(UserMessage, AiMessage)[n % 2](text) for n, text in enumerate(lines)]
        services.import_conversation(f"model-{name}", messages, MessageWindow(KEPT))
        assert verify(f"model-{name}") is None


def _copy(table: Any) -> str:
    """Return the statement that copies the rows of models, with their digests."""
    own = dict.fromkeys(("created_at", "updated_at", "said_at", "at"), "copies.at")
    own |= {"id": "copies.id", "memory_id": "copies.id", "labels": "copies.labels"}
    columns = [field.column for field in table._meta.local_concrete_fields]
    values = ", ".join(own.get(column, f"row.{column}") for column in columns)
    name, key = table._meta.db_table, "id" if "labels" in columns else "memory_id"
    return f"""INSERT INTO {name} ({", ".join(columns)}) SELECT {values}
        FROM copies CROSS JOIN {name} row WHERE row.{key} = copies.model"""
