"""The diagnosis of a stored window, now or after a step, read from the ledger alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from chatmemory import database
from chatmemory.core.codec import GAP
from chatmemory.core.eviction import Reason
from chatmemory.core.lint.since import CallIds, Past, Place
from chatmemory.core.messages import TYPES, ChatMessage
from chatmemory.diagnosis import Diagnosis, diagnose
from chatmemory.ledger.sql import window_messages
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message, Stay, Step
from chatmemory.queries.windows import StoredState

LEFT_AT_ONCE = 2_000  # places that are looked at, of messages that left
BYTES_AT_ONCE = 4_000_000  # of messages whose ids are read
_COLUMNS = ("n", "seq", "type", "has_calls", "rank", "entered_step", "left_step", "reason", "size")
_LEFT_STEP = _COLUMNS.index("left_step")


def diagnosis_of(state: StoredState) -> Diagnosis:
    """Return the diagnosis of the window as it is stored, with what a lowered limit hides.

    Raises StepNotFound, and CorruptRow for a message that cannot be read.
    """
    step = state.step
    said = dict(_messages(state))
    found = diagnose(
        list(said.values()),
        list(said),
        step=step.n,
        has_left=step.last_seq > step.count_after,
        past_of=lambda seqs: _past_of(state, seqs),
    )
    steps = {each.since or step.n for each in found.problems}
    if not steps:
        return found
    rows = Step.objects.filter(memory=state.memory, n__in=steps)
    return found.with_times(dict(rows.values_list("n", "at")))


def _messages(state: StoredState) -> Iterable[tuple[int, ChatMessage]]:
    if state.at in (None, state.memory.last_step):
        return [(row.seq, read_message(row)) for row in window_messages(state.memory.pk)]
    stays = state.stays.select_related("message")
    return [(stay.seq, read_message(stay.message)) for stay in stays]


def _past_of(state: StoredState, seqs: Collection[int]) -> Past:
    """Return the past of a window, with all places of these messages."""
    memory, at = state.memory, state.step.n
    ended = Stay.objects.filter(memory=memory, left_step__lte=at)
    newest = list(ended.order_by("-left_step").values_list(*_COLUMNS)[: LEFT_AT_ONCE + 1])
    known_from = newest[-1][_LEFT_STEP] if len(newest) > LEFT_AT_ONCE else 0
    of_named = Stay.objects.filter(
        database.in_list("seq", seqs), memory=memory, entered_step__lte=at
    ).order_by()
    rows = {row[0]: row for row in state.stays.values_list(*_COLUMNS)}
    rows |= {row[0]: row for row in newest if row[_LEFT_STEP] > known_from}
    rows |= {row[0]: row for row in of_named.values_list(*_COLUMNS)}
    sizes = {row[1]: row[-1] for row in rows.values()}

    def read_ids(wanted: Collection[int]) -> Mapping[int, CallIds]:
        if sum(sizes[seq] for seq in wanted) > BYTES_AT_ONCE:
            return {}
        return ids_of_calls(memory.pk, wanted)

    return Past((_place(row, at) for row in rows.values()), read_ids, known_from)


def _place(row: Sequence[Any], at: int) -> Place:
    n, seq, type, has_calls, rank, entered, left, reason, _ = row
    if left is None or left > at:
        return Place(n, seq, TYPES[type], has_calls, rank, entered)
    return Place(n, seq, TYPES[type], has_calls, rank, entered, left, reason == Reason.MOVED)


def ids_of_calls(memory_id: str, seqs: Iterable[int]) -> dict[int, CallIds]:
    """Return the ids of the tool calls that messages make or answer, by seq."""
    messages = Message.objects.filter(database.in_list("seq", seqs), memory_id=memory_id)
    return {seq: ids_in(frame) for seq, frame in messages.values_list("seq", "frame")}


def ids_in(frame: str) -> CallIds:
    """Return the ids of calls in the frame of a message, or of the call that it answers; one that
    is unknown if it cannot be read.

    Reading a whole message takes ten times as long.
    """
    try:
        value = json.loads(frame.replace(GAP, "null"))
        calls = value.get("toolExecutionRequests") or [value]
        return tuple((call or {}).get("id") or None for call in calls)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return (None,)
