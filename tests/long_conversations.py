"""Long conversations for tests of pages, made by the database, which is quicker than adds."""

from __future__ import annotations

from django.db import connection
from django.db.models import F, Model

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.models import RANK_SPACING, Memory, Message, Stay, Step


def long_conversation(memory_id: str, messages: int, kept: int = 20) -> None:
    """Create a conversation of so many messages, of which a message window keeps the newest.

    User and assistant say "m1", "m2", … in turn. The rows are those that adds would write, except
    that token counts and digests after the first `2 * kept` messages are copies.
    """
    first = min(messages, 2 * kept)
    said = [(AiMessage, UserMessage)[n % 2](f"m{n}") for n in range(1, first + 1)]
    services.import_conversation(memory_id, said, MessageWindow(kept))
    if messages == first:
        return
    more = messages - first
    tokens = Message.objects.get(memory=memory_id, seq=first).tokens
    left = messages - kept
    Stay.objects.filter(memory=memory_id, left_step=None, n__lte=left).update(
        left_step=F("n") + kept, reason="CAPACITY"
    )
    _copy(
        Message,
        "seq",
        memory_id,
        (first, messages),
        {
            "seq": "number",
            "text": _renumbered("row.text"),
            "payload": _renumbered("row.payload"),
        },
    )
    _copy(
        Stay,
        "n",
        memory_id,
        (first, messages),
        {
            "n": "number",
            "seq": "number",
            "entered_step": "number",
            "left_step": f"CASE WHEN number <= {left} THEN number + {kept} END",
            "reason": f"CASE WHEN number <= {left} THEN 'CAPACITY' END",
            "rank": f"row.rank + (number - row.n) * {RANK_SPACING}",
        },
    )
    _copy(
        Step,
        "n",
        memory_id,
        (first, messages),
        {
            **dict.fromkeys(("n", "last_seq", "last_stay", "said_count"), "number"),
            "oldest": "row.oldest + number - row.n",
            "history_tokens": f"row.history_tokens + (number - row.n) * {tokens}",
        },
    )
    Memory.objects.filter(pk=memory_id).update(
        **dict.fromkeys(("last_step", "last_seq", "last_stay", "said_count"), messages),
        oldest=F("oldest") + more,
        history_tokens=F("history_tokens") + more * tokens,
    )


def fleet(until: int, start: int = 0) -> None:
    """Create conversations of 20 messages, the ids of which are fleet-<start> to below `until`.

    They are copies of the first one, and so are their digests.
    """
    model = "fleet-0"
    if not Memory.objects.filter(pk=model).exists():
        long_conversation(model, 20, kept=10)
        start = max(start, 1)
    for table in (Memory, Message, Stay, Step):
        key = "id" if table is Memory else "memory_id"
        columns = [field.column for field in table._meta.local_concrete_fields]
        values = ["'fleet-' || number" if name == key else f"row.{name}" for name in columns]
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                WITH RECURSIVE numbers(number) AS (
                  SELECT %s UNION ALL SELECT number + 1 FROM numbers WHERE number < %s - 1
                )
                INSERT INTO {table._meta.db_table} ({", ".join(columns)})
                SELECT {", ".join(values)} FROM numbers
                JOIN {table._meta.db_table} row ON row.{key} = %s
                """,
                [start, until, model],
            )


def _renumbered(column: str) -> str:
    return f"replace({column}, CAST(row.seq AS text), CAST(number AS text))"


def _copy(
    model: type[Model], key: str, memory_id: str, span: tuple[int, int], changed: dict[str, str]
) -> None:
    """Insert a row for each number after the first of the span, by the last two rows in turn."""
    first, last = span
    columns = [field.column for field in model._meta.local_concrete_fields]
    values = ", ".join(changed.get(column, f"row.{column}") for column in columns)
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH RECURSIVE numbers(number) AS (
              SELECT %s + 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < %s
            )
            INSERT INTO {table} ({", ".join(columns)})
            SELECT {values} FROM numbers
            JOIN {table} row ON row.memory_id = %s AND row.{key} = %s - (number - %s) %% 2
            """,
            [first, last, memory_id, first, first],
        )
