"""The flags of conversations that need attention, updated with every change of the window.

What providers would say to the window is its `health`, of which the columns for lists are made. An
add reads no more than it decides on, with three exceptions, in which the whole window is read: a
policy of another kind took what is not the oldest, the oldest left from behind a pinned message
that belongs to it, or a system message left from between reasoning and what follows it.

A message is *oversized* if the limit has no room for it even alone; see `transitions`. One that
left in the step that added it, such as a result together with its call, was never in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import takewhile
from typing import Any

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Window
from chatmemory.ledger.health import Beginning, Health, examined
from chatmemory.ledger.windows import StayEntry, stay_entries, unprotected
from chatmemory.models import Memory


def missed(memory: Memory, transition: Transition, evicted: Collection[int]) -> None:
    """Update the flags for a message that the limit has no room for, or that left as it came."""
    if transition.is_oversized:
        memory.oversized_step = memory.last_step
    if any(arrival.seq in evicted for arrival in stay_entries(transition.arrivals)):
        memory.missed_step = memory.last_step


def added(memory: Memory, before: Health, transition: Transition, window: Window) -> Health:
    """Return the health after an add to the window."""
    arrivals = list(stay_entries(transition.arrivals))
    health, left, staying = before, [], arrivals
    if transition.evictions:
        arrived = {arrival.seq for arrival in arrivals}
        evicted = list(stay_entries(each.entry for each in transition.evictions))
        left = [entry for entry in evicted if entry.seq not in arrived]
        staying = [arrival for arrival in arrivals if arrival not in evicted]
    if left:
        gone = {entry.seq for entry in left}
        if _is_torn(before, transition, window, gone, arrived):
            return of_whole(memory, before, window)
        beginning = _beginning_of(each for each in stay_entries(window) if each.seq not in arrived)
        health = before.without(gone, [entry.type for entry in left], beginning)
    if len(staying) == 1 and staying[0].message is not None:
        found = health.with_text(staying[0].seq, staying[0].message)
        if found is not None:
            return found
    for arrival in staying:
        if arrival.message is not None:
            health = health.with_message(
                arrival.seq, arrival.message, memory.last_step, transition.at_head
            )
    return health.judged(memory.last_step, _has_left(memory), before)


def of_whole(memory: Memory, before: Health, window: Window) -> Health:
    """Return the health of a whole window, of which all messages are read."""
    loaded = list(stay_entries(window.with_messages()))
    messages = [(each.seq, each.message) for each in loaded if each.message is not None]
    assert len(messages) == len(loaded), "each entry has its message"
    return examined(messages, memory.last_step, _has_left(memory), before)


def keep(memory: Memory, health: Health, at: datetime) -> None:
    """Put a health into the row of a conversation, and what lists need of it."""
    stored, was_ill = health.stored(), memory.health.get("ill_step")
    memory.ill_at = (memory.ill_at if health.ill_step == was_ill else at) if health.faults else None
    if stored != memory.health:
        memory.health = stored
    for name, value in columns_of(health).items():
        setattr(memory, name, value)


def columns_of(health: Health) -> dict[str, Any]:
    """Return the columns that are made of a health."""
    names = ("waiting_call", "problems", "refused_by")
    return {name: getattr(health, name) for name in names}


def _has_left(memory: Memory) -> bool:
    return memory.last_seq > memory.window_count


def _beginning_of(entries: Iterable[StayEntry]) -> Beginning:
    leading = 0
    for entry in entries:
        if entry.type is MessageType.SYSTEM:
            leading += 1
        elif entry.type is not MessageType.CUSTOM:
            return Beginning.of(leading, entry.type, entry.has_calls, entry.seq)
    return Beginning(leading)


def _is_torn(
    before: Health,
    transition: Transition,
    window: Window,
    gone: Collection[int],
    arrived: Collection[int],
) -> bool:
    """Return whether messages left from elsewhere than the window's beginning, so that others
    follow one another that did not.
    """
    trimmed = [each.entry for each in transition.evictions if each.reason is not Reason.REPLACED]
    oldest = [entry.rank for entry in stay_entries(trimmed) if entry.seq in gone]
    if len(oldest) < len(gone) and any(each.rule == "lone_reasoning" for each in before.faults):
        return True
    if not oldest:
        return False
    first = next((each for each in unprotected(window) if each.seq not in arrived), None)
    if first is not None and first.rank < max(oldest):
        return True
    is_behind_call = any(entry.has_calls for entry in trimmed)
    if is_behind_call and first is not None and first.type is MessageType.CUSTOM:
        return True  # it may stand between the call and its result
    if not transition.pinned.count:
        return False
    held = takewhile(lambda each: each is not first, stay_entries(window))
    pinned = [each for each in held if each.pinned]
    return bool(pinned) and _is_torn_behind(pinned[-1], first, before, gone)


def _is_torn_behind(
    pinned: StayEntry, first: StayEntry | None, before: Health, gone: Collection[int]
) -> bool:
    """Return whether what is behind a pinned message now may be at fault for that, or no more."""
    if not before.known.isdisjoint(gone) or pinned.type is MessageType.AI:
        return True
    if first is None:
        return False
    is_result = first.type is MessageType.TOOL_EXECUTION_RESULT
    return is_result or (first.has_calls and "call_after_model" in before.rules)
