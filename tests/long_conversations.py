"""Long conversations for tests of pages, made by the database, which is quicker than adds."""

from __future__ import annotations

from django.db import connection
from django.db.models import F, Model, Sum

from chatmemory import (
    AiMessage,
    ChatMessage,
    MessageWindow,
    Policy,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    search,
    services,
)
from chatmemory.ledger.client_list import RANK_SPACING
from chatmemory.ledger.indexing import repair
from chatmemory.models import Memory, Message, Stay, Step

# The JSON of a copied message differs by the digits of its number.
SIZE = "row.size + length(CAST(number AS text)) - length(CAST(row.seq AS text))"


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
            "frame": _renumbered("row.frame"),
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
            "size": SIZE,
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
        window_size=_window_size(memory_id),
    )


def _window_size(memory_id: str) -> int:
    stays = Stay.objects.filter(memory=memory_id, left_step=None)
    size: int = stays.aggregate(size=Sum("size"))["size"]
    return size


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
    search.index_of(connection).rebuild()


def wide_conversation(
    memory_id: str, messages: int, policy: Policy | None = None, tools: bool = False
) -> None:
    """Create a conversation whose memory holds all of so many messages (an even number).

    User and assistant say "m1", "m2", … in turn; with `tools` the assistant calls a tool, and its
    result answers. Digests are copies, as those of `long_conversation`.
    """
    said = [_in_turn(n, tools) for n in range(1, 3)]
    services.import_conversation(memory_id, said, policy or MessageWindow(messages))
    first, second = Message.objects.filter(memory=memory_id).order_by("seq")
    pair = first.tokens + second.tokens
    tokens = f"number / 2 * {pair} + number %% 2 * {first.tokens}"
    tokens_before = f"(number - 1) / 2 * {pair} + (number - 1) %% 2 * {first.tokens}"
    span = (2, messages)
    names = {name: _renumbered(f"row.{name}") for name in ("text", "frame")}
    _copy(Message, "seq", memory_id, span, {"seq": "number"} | names)
    ranks = {"rank": f"row.rank + (number - row.n) * {RANK_SPACING}", "size": SIZE}
    numbers = dict.fromkeys(("n", "seq", "entered_step"), "number")
    _copy(Stay, "n", memory_id, span, numbers | ranks)
    counts = dict.fromkeys(("n", "last_seq", "last_stay", "said_count", "count_after"), "number")
    totals = {"count_before": "number - 1", "tokens_before": tokens_before}
    totals |= dict.fromkeys(("tokens_after", "history_tokens"), tokens)
    _copy(Step, "n", memory_id, span, counts | totals)
    last = dict.fromkeys(("last_step", "last_seq", "last_stay", "said_count"), messages)
    said_tokens = dict.fromkeys(("window_tokens", "history_tokens"), messages // 2 * pair)
    Memory.objects.filter(pk=memory_id).update(window_count=messages, **last, **said_tokens)
    memory = Memory.objects.get(pk=memory_id)
    memory.window_load = memory.policy.load(messages, memory.window_tokens)
    memory.window_size = _window_size(memory_id)
    memory.save()


def _in_turn(n: int, tools: bool) -> ChatMessage:
    if not tools:
        return (AiMessage, UserMessage)[n % 2](f"m{n}")
    if n % 2:
        return AiMessage(f"m{n}", [ToolExecutionRequest("id", "look", "{}")])
    return ToolExecutionResultMessage("id", "look", f"m{n}")


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
    if model is Message:
        repair(memory_id)
