"""Long conversations for tests of pages, made by the database, which is faster than adds."""

from __future__ import annotations

from django.db import connection
from django.db.models import F, Model, Sum

from chatmemory import AiMessage, MessageWindow, UserMessage, search, services
from chatmemory.ledger.numbers import RANK_SPACING
from chatmemory.models import Memory, Message, Stay, Step

OLD, NEW = "CAST(row.seq AS text)", "CAST(number AS text)"


def long_conversation(memory_id: str, messages: int, kept: int = 20) -> None:
    """Create a conversation of so many messages. A message window keeps the newest.

    User and assistant say "m1", "m2", … in turn. The rows are as adds would write them, except that
    token counts and digests after the first `2 * kept` messages are copies.
    """
    first = min(messages, 2 * kept)
    said = [(AiMessage, UserMessage)[n % 2](f"m{n}") for n in range(1, first + 1)]
    services.import_conversation(memory_id, said, MessageWindow(kept))
    if messages == first:
        return
    more, left = messages - first, messages - kept
    tokens = Message.objects.get(memory=memory_id, seq=first).tokens
    Stay.objects.filter(memory=memory_id, left_step=None, n__lte=left).update(
        left_step=F("n") + kept, reason="CAPACITY"
    )
    texts = {name: f"replace(row.{name}, {OLD}, {NEW})" for name in ("text", "frame")}
    stays = dict.fromkeys(("n", "seq", "entered_step"), "number") | {
        "left_step": f"CASE WHEN number <= {left} THEN number + {kept} END",
        "reason": f"CASE WHEN number <= {left} THEN 'CAPACITY' END",
        "rank": f"row.rank + (number - row.n) * {RANK_SPACING}",
        # The JSON of a copied message differs by the digits of its number.
        "size": f"row.size + length({NEW}) - length({OLD})",
    }
    steps = dict.fromkeys(("n", "last_seq", "last_stay", "said_count"), "number") | {
        "oldest": "row.oldest + number - row.n",
        "history_tokens": f"row.history_tokens + (number - row.n) * {tokens}",
    }
    for model, key, changed in (
        (Message, "seq", {"seq": "number"} | texts),
        (Stay, "n", stays),
        (Step, "n", steps),
    ):
        _copy(model, key, memory_id, first, messages, changed)
    search.index().repair(memory_id)
    window = Stay.objects.filter(memory=memory_id, left_step=None).aggregate(size=Sum("size"))
    Memory.objects.filter(pk=memory_id).update(
        **dict.fromkeys(("last_step", "last_seq", "last_stay", "said_count"), messages),
        oldest=F("oldest") + more,
        history_tokens=F("history_tokens") + more * tokens,
        window_size=window["size"],
    )


def fleet(until: int) -> None:
    """Create conversations of 20 messages with the ids fleet-0 to below fleet-<until>.

    They are copies of the first one, and so are their digests.
    """
    model = "fleet-0"
    if not Memory.objects.filter(pk=model).exists():
        long_conversation(model, 20, kept=10)
    for table in (Memory, Message, Stay, Step):
        key = "id" if table is Memory else "memory_id"
        columns = [field.column for field in table._meta.local_concrete_fields]
        values = ["'fleet-' || number" if name == key else f"row.{name}" for name in columns]
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                WITH RECURSIVE numbers(number) AS (
                  SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < %s - 1
                )
                INSERT INTO {table._meta.db_table} ({", ".join(columns)})
                SELECT {", ".join(values)} FROM numbers
                JOIN {table._meta.db_table} row ON row.{key} = %s
                """,
                [until, model],
            )
    search.index_of(connection).rebuild()


def _copy(
    model: type[Model], key: str, memory_id: str, first: int, last: int, changed: dict[str, str]
) -> None:
    """Insert a row for each number after `first`, up to `last`, as copies of the last two rows in
    turn.
    """
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
