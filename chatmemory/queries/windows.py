"""The window that the model sees, now or at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django.db.models import QuerySet
from django.db.models.functions import Left

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import Entry, Totals, Window
from chatmemory.ledger.entries import read_message
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.stored_window import open_stays, stays_at
from chatmemory.models import Message, Stay
from chatmemory.queries.rows import Place, WindowPlace, WindowRow, WindowView


def window(memory_id: str, at: int | None = None) -> WindowView[WindowRow]:
    """Return the window at step `at` with its messages. Raises MemoryNotFound, StepNotFound."""
    return _view(memory_id, at, _with_messages)


def outline(memory_id: str, at: int | None = None) -> WindowView[WindowPlace]:
    """Return the window at step `at` without texts, which is fast for thousands of messages.

    Raises MemoryNotFound, StepNotFound.
    """
    return _view(memory_id, at, places)


def beginnings(memory_id: str, seqs: Iterable[int], size: int) -> dict[int, str]:
    """Return the first `size` characters of some messages, by seq."""
    texts = Message.objects.filter(memory_id=memory_id, seq__in=list(seqs))
    return dict(texts.annotate(start=Left("text", size)).values_list("seq", "start"))


def calls_in(memory_id: str, places: Iterable[WindowPlace]) -> dict[int, int]:
    """Return the number of tool calls of each message that has some, by seq."""
    calling = [place.seq for place in places if place.has_calls]
    rows = Message.objects.filter(memory_id=memory_id, seq__in=calling) if calling else ()
    return {row.seq: len(getattr(read_message(row), "tool_execution_requests", ())) for row in rows}


def _view(
    memory_id: str, at: int | None, read: Callable[[QuerySet[Stay]], list[Place]]
) -> WindowView[Place]:
    memory = find_memory(memory_id)
    if at is None:
        at, policy, stays = memory.last_step, memory.policy, open_stays(memory_id)
    else:
        step = find_step(memory, at)
        policy, stays = step.policy, stays_at(step)
    return view_of(memory_id, at, policy, read(stays))


def view_of(
    memory_id: str, step: int, policy: Policy | None, rows: Sequence[Place]
) -> WindowView[Place]:
    """Return the window of some rows, with those that a lowered limit hides in `over_limit`."""
    hidden = _over_limit(rows, policy)
    return WindowView(
        memory_id,
        step,
        policy,
        rows=tuple(place for i, place in enumerate(rows) if i not in hidden),
        over_limit=tuple(rows[i] for i in sorted(hidden)),
    )


def _over_limit(places: Sequence[WindowPlace], policy: Policy | None) -> set[int]:
    """Return the positions that a lowered limit hides; none without an installed policy."""
    totals = Totals(len(places), sum(place.tokens for place in places))
    if not can_decide(policy) or not policy.is_exceeded_by(totals):
        return set()
    entries = (
        Entry(place.type, place.has_calls, place.tokens, key=i) for i, place in enumerate(places)
    )
    evictions = over_limit(Window(entries, totals), policy)
    return {i for eviction in evictions if isinstance(i := eviction.entry.key, int)}


def _with_messages(stays: QuerySet[Stay]) -> list[WindowRow]:
    return [_window_row(stay) for stay in stays.select_related("message")]


def places(stays: QuerySet[Stay]) -> list[WindowPlace]:
    """Return the places of stays, without the texts of their messages."""
    columns = stays.values_list("seq", "type", "has_calls", "tokens", "entered_step")
    return [
        WindowPlace(seq, MessageType(type), has_calls, tokens, entered)
        for seq, type, has_calls, tokens, entered in columns
    ]


def _window_row(stay: Stay) -> WindowRow:
    return WindowRow(
        seq=stay.seq,
        entered_step=stay.entered_step,
        type=MessageType(stay.type),
        has_calls=stay.has_calls,
        tokens=stay.tokens,
        text=stay.message.text,
        payload=stay.message.payload,
        message=read_message(stay.message),
    )
