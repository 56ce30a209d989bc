"""Lists of conversations, and the rows of the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db.models import F, Q
from django.db.models.functions import Coalesce, Left

from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.stored_policies import load_or_tokens
from chatmemory.core.window import Totals
from chatmemory.models import Memory, Message, Step
from chatmemory.queries.cursors import CursorPage, SortKey, page_by_cursor, whole
from chatmemory.queries.filters import EVERYTHING, MemoryFilter
from chatmemory.queries.over_limits import OverLimit, hidden_wholly, over_limits_now
from chatmemory.queries.rows import MemoryRow, memory_row
from chatmemory.queries.searching import Mention, best_matches, having

WITHIN_LIMIT = OverLimit()


@dataclass(frozen=True)
class OverviewRow:
    """A conversation with its newest message and the load of its window in the last steps.

    `over_limit` is what a lowered limit hides. `mention` is what was found in its messages, if
    they were searched.
    """

    memory: MemoryRow
    snippet: str
    loads: tuple[int, ...]
    mention: Mention | None = None
    over_limit: OverLimit = WITHIN_LIMIT


SPARK_STEPS = 40
ORDERINGS: dict[str, SortKey] = {
    "activity": SortKey(F("updated_at"), datetime),
    "created": SortKey(F("created_at"), datetime),
    "id": SortKey(F("id"), str),
    "said": SortKey(F("said_count")),
    "tokens": SortKey(F("history_tokens")),
    "forgotten": SortKey(F("last_seq") - F("window_count")),
    "fill": SortKey(Coalesce(F("window_load") * 1000 / F("policy_limit"), 0)),
}


def memory_page(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 50,
) -> CursorPage[MemoryRow]:
    """Return a page of conversations. `ordering` is one of ORDERINGS; a minus means descending.

    Raises InvalidValue for an unknown ordering and for an invalid cursor.
    """
    page = _page(which, ordering, cursor, size)
    return CursorPage(tuple(map(memory_row, page.rows)), page.previous, page.next)


def all_memories(which: MemoryFilter) -> list[MemoryRow]:
    """Return all conversations that match a filter, by id. Count them first."""
    return [memory_row(row) for row in which.rows().order_by("id")]


def overview(
    which: MemoryFilter = EVERYTHING,
    *,
    ordering: str = "-activity",
    cursor: str = "",
    size: int = 25,
) -> CursorPage[OverviewRow]:
    """Return a page of conversations with the details of the overview page.

    Raises the exceptions of `memory_page`.
    """
    page = _page(which, ordering, cursor, size)
    return CursorPage(_overview_rows(page.rows, which.search), page.previous, page.next)


def overview_rows(memory_ids: Sequence[str], search: str = "") -> tuple[OverviewRow, ...]:
    """Return the rows of these conversations in the given order, without unknown ids."""
    found = Memory.objects.in_bulk(memory_ids)
    known = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return _overview_rows(known, search)


def _page(which: MemoryFilter, ordering: str, cursor: str, size: int) -> CursorPage[Memory]:
    key = ORDERINGS.get(ordering.removeprefix("-"))
    if key is None:
        names = ", ".join(ORDERINGS)
        raise InvalidValue(f"ordering must be one of {names}, each also with a minus before it")
    descending = ordering.startswith("-")
    return page_by_cursor(
        which.searched(),
        key,
        descending=descending,
        cursor=cursor,
        size=size,
        narrowed=partial(having, which) if which.search else whole,
    )


def _overview_rows(rows: Sequence[Memory], search: str) -> tuple[OverviewRow, ...]:
    if not rows:
        return ()
    newest, recent = Q(), Q()
    for row in rows:
        newest |= Q(memory_id=row.pk, seq=row.last_seq)
        recent |= Q(memory_id=row.pk, n__gt=row.last_step - SPARK_STEPS)
    texts = Message.objects.filter(newest).annotate(start=Left("text", 200))
    snippets: dict[str, str] = dict(texts.values_list("memory_id", "start"))
    loads: dict[str, list[int]] = {row.pk: [] for row in rows}
    for step in Step.objects.filter(recent).order_by("n"):
        after = Totals(step.count_after, step.tokens_after)
        loads[step.memory_id].append(load_or_tokens(step.policy, after))
    memories = [memory_row(row) for row in rows]
    over = over_limits_now(memories)
    hidden = {memory_id: each.hidden for memory_id, each in over.items()}
    ids = [row.pk for row in rows]
    found = best_matches(search, ids, hidden_wholly(hidden, memories)) if search else {}
    return tuple(
        OverviewRow(
            memory=memory,
            snippet=snippets.get(memory.id, ""),
            loads=tuple(loads[memory.id]),
            mention=found.get(memory.id),
            over_limit=over.get(memory.id, WITHIN_LIMIT),
        )
        for memory in memories
    )
