"""What a lowered limit hides in many conversations at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Window as Partition
from django.db.models.functions import RowNumber

from chatmemory.core.messages import MessageType
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import total
from chatmemory.models import Stay
from chatmemory.queries.rows import MemoryRow
from chatmemory.queries.windows import (
    PLACE_COLUMNS,
    NoRoom,
    WindowPlace,
    evicted_by,
    outline,
    place_of,
    why_no_room,
)

HIDDEN_MAX = 500


@dataclass(frozen=True)
class OverLimit:
    """What a lowered limit hides of a window, up to 500 messages, and why there is `no_room` for
    any other (see `WindowView`), which is not known of longer windows.
    """

    hidden: tuple[int, ...] = ()
    no_room: NoRoom | None = None


def over_limits_now(rows: Iterable[MemoryRow]) -> dict[str, OverLimit]:
    """Return what a lowered limit hides, by conversation that is over its limit.

    It is the first 500 in the window: a page of conversations reads no more of each.
    """
    over = {row.id: row for row in rows if row.is_over_limit}
    heads: dict[str, list[WindowPlace]] = {memory_id: [] for memory_id in over}
    for memory_id, *columns in _heads(list(over)) if over else ():
        heads[memory_id].append(place_of(columns))
    return {memory_id: _over_limit(row, heads[memory_id]) for memory_id, row in over.items()}


def _over_limit(row: MemoryRow, head: Sequence[WindowPlace]) -> OverLimit:
    leaving = {each.seq for each in evicted_by(row.policy, head, row.window)}
    hidden = tuple(place.seq for place in head if place.seq in leaving)[:HIDDEN_MAX]
    if len(head) > HIDDEN_MAX or not can_decide(row.policy):
        return OverLimit(hidden)
    pinned = row.window.without(total(head))
    kept = (place for place in head if place.seq not in leaving)
    system = next((place for place in kept if place.type is MessageType.SYSTEM), None)
    room = (
        row.policy.limit - row.policy.overhead - (row.policy.cost(system.tokens) if system else 0)
    )
    held = row.policy.load(*pinned) - row.policy.overhead
    return OverLimit(hidden, no_room=why_no_room(row.policy, held, room))


def hidden_wholly(
    hidden: Mapping[str, Collection[int]], rows: Iterable[MemoryRow]
) -> dict[str, Collection[int]]:
    """Return what is `hidden` without its bound: it reads the windows that may reach it.

    With options, what leaves can depend on messages behind the first ones.
    """
    beyond = {
        row.id
        for row in rows
        if len(hidden.get(row.id, ())) >= HIDDEN_MAX
        or (row.window.count > HIDDEN_MAX and row.policy and row.policy.has_window_options)
    }
    return {
        memory_id: (
            {row.seq for row in outline(memory_id).over_limit} if memory_id in beyond else seqs
        )
        for memory_id, seqs in hidden.items()
    }


def _heads(memory_ids: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return the ids and the columns of the first open stays of each conversation.

    There is one more than may be hidden, for a leading system message, which stays. Pinned ones
    stay as well, and are left out.
    """
    number = Partition(RowNumber(), partition_by="memory_id", order_by="rank")
    stays = Stay.objects.filter(memory_id__in=memory_ids, left_step=None, pinned=False)
    stays = stays.annotate(place=number)
    stays = stays.filter(place__lte=HIDDEN_MAX + 1).order_by("memory_id", "rank")
    return stays.values_list("memory_id", *PLACE_COLUMNS)
