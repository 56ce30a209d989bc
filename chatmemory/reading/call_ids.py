"""Reads which tool calls the stored messages make or answer."""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatmemory.ledger.sql import frames_by_seq
from chatmemory.lint.since import CallIds
from chatmemory.messages.codec import GAP


def ids_of_calls(memory_id: str, seqs: Iterable[int]) -> dict[int, CallIds]:
    """Return, by the seq of a message, the ids of the tool calls that the message makes or
    answers.
    """
    found = frames_by_seq(memory_id, seqs)
    return {seq: ids_in(frame) for seq, frame in found.items()}


def ids_in(frame: str) -> CallIds:
    """Return the ids of the tool calls that a message makes or answers. `frame` is the message's
    stored JSON.

    An id is None if the tool call has no id. Return `(None,)` if the JSON cannot be read.
    """
    try:
        value = json.loads(frame.replace(GAP, "null"))
        calls = value.get("toolExecutionRequests") or [value]
        return tuple((call or {}).get("id") or None for call in calls)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return (None,)
