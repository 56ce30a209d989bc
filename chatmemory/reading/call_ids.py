"""The ids of the tool calls that stored messages make or answer."""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatmemory import database
from chatmemory.lint.since import CallIds
from chatmemory.messages.codec import GAP
from chatmemory.models import Message


def ids_of_calls(memory_id: str, seqs: Iterable[int]) -> dict[int, CallIds]:
    """Return the ids of the tool calls that messages make or answer, by seq."""
    messages = Message.objects.filter(database.in_list("seq", seqs), memory_id=memory_id)
    return {seq: ids_in(frame) for seq, frame in messages.values_list("seq", "frame")}


def ids_in(frame: str) -> CallIds:
    """Return the ids of the calls that a message's frame makes or answers. An unreadable frame has
    one unknown id, None.

    Reading a whole message takes ten times as long.
    """
    try:
        value = json.loads(frame.replace(GAP, "null"))
        calls = value.get("toolExecutionRequests") or [value]
        return tuple((call or {}).get("id") or None for call in calls)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return (None,)
