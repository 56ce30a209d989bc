"""What the model sees, now or after any step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from django.db.models import QuerySet
from django.db.models.functions import Left

from chatmemory.core.estimators import family_named, remember_tokens
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import Entry, Totals, Window
from chatmemory.ledger.stored_window import nothing_yet, open_stays, read_message, stays_at
from chatmemory.models import Memory, Message, Stay
from chatmemory.queries.conversations import stored_memory, stored_step
from chatmemory.queries.rows import Place, WindowPlace, WindowRow, WindowView


def open_messages(memory_id: str) -> list[ChatMessage]:
    """The open stays in order, untrimmed; [] for an unknown id (the store protocol's get).

    Each message remembers its stored token count, so that a reader need not count again.
    """
    named = Memory.objects.filter(pk=memory_id).values_list("policy_estimator", flat=True).first()
    family = family_named(named) if named else ""
    messages = []
    for stay in open_stays(memory_id).select_related("message"):
        message = read_message(stay.message)
        remember_tokens(message, family, stay.tokens)
        messages.append(message)
    return messages


def window(memory_id: str, at: int | None = None) -> WindowView[WindowRow]:
    """The window after step `at`, with its messages. Raises MemoryNotFound, StepNotFound."""
    return _view(memory_id, at, _with_messages)


def outline(memory_id: str, at: int | None = None) -> WindowView[WindowPlace]:
    """The window after step `at` without texts: thousands of places are read in no time.

    Raises MemoryNotFound, StepNotFound.
    """
    return _view(memory_id, at, _without_messages)


def beginnings(memory_id: str, seqs: Iterable[int], size: int) -> dict[int, str]:
    """The first `size` characters of some messages, by seq."""
    texts = Message.objects.filter(memory_id=memory_id, seq__in=list(seqs))
    return dict(texts.annotate(start=Left("text", size)).values_list("seq", "start"))


def calls_in(memory_id: str, places: Iterable[WindowPlace]) -> dict[int, int]:
    """How many tools each calling message among these asks for, by seq."""
    calling = [place.seq for place in places if place.has_calls]
    rows = Message.objects.filter(memory_id=memory_id, seq__in=calling) if calling else ()
    return {row.seq: len(getattr(read_message(row), "tool_execution_requests", ())) for row in rows}


def _view(
    memory_id: str, at: int | None, read: Callable[[QuerySet[Stay]], list[Place]]
) -> WindowView[Place]:
    row = stored_memory(memory_id)
    if at == 0:
        return WindowView(memory_id, 0, nothing_yet(row).policy, (), ())
    if at is None:
        at, policy, stays = row.last_step, row.policy, open_stays(memory_id)
    else:
        step = stored_step(memory_id, at)
        policy, stays = step.policy, stays_at(step)
    places = read(stays)
    hidden = _over_limit(places, policy) if can_decide(policy) else set()
    return WindowView(
        memory_id,
        at,
        policy,
        rows=tuple(place for i, place in enumerate(places) if i not in hidden),
        over_limit=tuple(places[i] for i in sorted(hidden)),
    )


def _over_limit(places: Sequence[WindowPlace], policy: Policy) -> set[int]:
    """The positions that a lowered limit hides."""
    totals = Totals(len(places), sum(place.tokens for place in places))
    if policy.load(*totals) <= policy.limit:
        return set()
    entries = (
        Entry(place.type, place.has_calls, place.tokens, key=i) for i, place in enumerate(places)
    )
    evictions = over_limit(Window(entries, totals), policy)
    return {i for eviction in evictions if isinstance(i := eviction.entry.key, int)}


def _with_messages(stays: QuerySet[Stay]) -> list[WindowRow]:
    return [_window_row(stay) for stay in stays.select_related("message")]


def _without_messages(stays: QuerySet[Stay]) -> list[WindowPlace]:
    columns = stays.values_list("seq", "entered_step", "type", "has_calls", "tokens")
    return [
        WindowPlace(seq, entered, MessageType(type), has_calls, tokens)
        for seq, entered, type, has_calls, tokens in columns
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
