"""What is shown of messages: how their texts begin, and how many tools they call."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db.models import Case, Q, When
from django.db.models.functions import Left

from chatmemory.core.codec import GAP, message_from_frame
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.readable import readable_text
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message
from chatmemory.queries.windows import WindowPlace

# What stands in the JSON of a message between two calls, of which some may be empty or null. Within
# a string, each quote has a backslash before it, so few others have that.
_BETWEEN_CALLS = ('},{"', "},{}", "},null", "[null,")
_MAY_HAVE_SEVERAL = reduce(or_, [Q(frame__contains=part) for part in _BETWEEN_CALLS])

# Messages whose text people read otherwise than it is stored: tool results, and those with calls.
_CALLS = '"toolExecutionRequests":['
_CALLING = Q(frame__contains=_CALLS + "{") | Q(frame__contains=_CALLS + "null")
_IS_READ = Q(type=MessageType.TOOL_EXECUTION_RESULT) | Q(type=MessageType.AI) & _CALLING


def beginnings(memory_id: str, seqs: Iterable[int], size: int) -> dict[int, str]:
    """Return the first `size` characters of some messages as people read them, by seq.

    A text that has a gap in its frame is cut before it is put there.
    """
    rows = Message.objects.filter(memory_id=memory_id, seq__in=list(seqs)).annotate(
        read=Case(When(_IS_READ, then="frame"), default=None), start=Left("text", size)
    )
    columns = rows.values_list("seq", "read", "start")
    return {seq: _readable(frame, start)[:size] for seq, frame, start in columns}


def _readable(frame: str | None, text: str) -> str:
    """Return the readable text of a message, or the text if its frame is not there or corrupt."""
    try:
        message = message_from_frame(frame, text) if frame else None
    except InvalidMessage:
        return text
    return text if message is None else readable_text(message)


def several_calls(memory_id: str, rows: Iterable[WindowPlace]) -> dict[int, int]:
    """Return the number of tool calls of messages that may have several, by seq.

    Those of the rows are among them; their others with calls have one. Raises CorruptRow.
    """
    calling = [row.seq for row in rows if row.has_calls and row.seq > 0]
    if not calling:
        return {}
    messages = Message.objects.filter(memory_id=memory_id, type=MessageType.AI)
    messages = messages.filter(seq__gte=min(calling), seq__lte=max(calling))
    columns = messages.filter(_MAY_HAVE_SEVERAL).values_list("seq", "frame")
    return {seq: _number_of_calls(memory_id, seq, frame) for seq, frame in columns}


def _number_of_calls(memory_id: str, seq: int, frame: str) -> int:
    frame = frame.replace(GAP, "null")
    try:
        # Reading a whole message takes ten times as long
        return len(json.loads(frame).get("toolExecutionRequests") or ())
    except (ValueError, TypeError, AttributeError, RecursionError):
        return number_of_calls(read_message(Message(memory_id=memory_id, seq=seq, frame=frame)))


def number_of_calls(message: ChatMessage) -> int:
    """Return the number of a message's tool calls."""
    return len(getattr(message, "tool_execution_requests", ()))
