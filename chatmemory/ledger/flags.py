"""The flags of conversations that need attention, updated with every change of the window.

A tool call is *dangling* if another message followed it before all of its results; providers refuse
such a list. A message is *oversized* if the limit has no room for it even alone; see
`core.fitting`. One that left in the step that added it, such as a result together with its call,
was never in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from chatmemory.core.messages import MessageType
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry
from chatmemory.ledger.windows import StayEntry, stay_entries
from chatmemory.models import Memory


def arrived(memory: Memory, entry: StayEntry) -> None:
    """Update the flags for a message at the end of the window. Tool calls must be loaded."""
    if entry.type is MessageType.TOOL_EXECUTION_RESULT:
        memory.missing_results = max(0, memory.missing_results - 1)
        if not memory.missing_results:
            memory.waiting_call = None
        return
    if memory.waiting_call is not None:
        memory.dangling_call = memory.waiting_call
    calls = getattr(entry.message, "tool_execution_requests", ()) if entry.has_calls else ()
    memory.missing_results = len(calls)
    memory.waiting_call = entry.seq if calls else None


def added(
    memory: Memory, transition: Transition, arrival: StayEntry, evicted: Collection[int]
) -> None:
    """Update the flags for an add, with which the messages `evicted` left the window."""
    if memory.dangling_call in evicted:
        memory.dangling_call = None
    if memory.waiting_call in evicted:
        memory.waiting_call, memory.missing_results = None, 0
    if transition.is_oversized:
        memory.oversized_step = memory.last_step
    if arrival.seq in evicted:
        memory.missed_step = memory.last_step
    if arrival.seq not in evicted and not transition.at_head:
        arrived(memory, arrival)


def replaced(memory: Memory, entries: Iterable[Entry]) -> None:
    """Update the flags for a whole new window. Tool calls must be loaded."""
    memory.waiting_call = memory.dangling_call = None
    memory.missing_results = 0
    for entry in stay_entries(entries):
        arrived(memory, entry)
