"""Redaction: the replacement of a message, with its type but without its text.

Tool names and call ids stay, because they connect results to their call. The replacement text
contains the number of the message, so that no two redacted messages are equal: a memory ignores a
system message that is equal to the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatmemory.core.codec import message_to_json
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.window import Entry, Window
from chatmemory.ledger import chain
from chatmemory.models import Memory, Message


def redacted(message: ChatMessage, seq: int) -> ChatMessage:
    """Return the replacement of a message."""
    text = mark_of(seq)
    match message:
        case SystemMessage():
            return SystemMessage(text)
        case UserMessage():
            return UserMessage(text)
        case AiMessage():
            return AiMessage(text, tuple(map(_without_arguments, message.tool_execution_requests)))
        case ToolExecutionResultMessage():
            return ToolExecutionResultMessage(message.id, message.tool_name, text)
    return CustomMessage({"text": text})


def check_commitment(row: Message) -> None:
    """Raise CorruptRow if a message is not the one that was said. One without a salt is older than
    the chain of digests.
    """
    if row.salt is not None and chain.commitment_of(row) != bytes(row.commitment or b""):
        raise CorruptRow(f"message #{row.seq} of {row.memory_id!r} is not what was said")


def mark_of(seq: int) -> str:
    """Return the text of a redacted message."""
    return f"[redacted #{seq}]"


def _without_arguments(request: ToolExecutionRequest | None) -> ToolExecutionRequest | None:
    return ToolExecutionRequest(request.id, request.name, "{}") if request else None


def with_stored_tokens(memory: Memory, window: Window, arrivals: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a new list, in which redacted messages keep their stored token count.

    Redaction does not change a token count, so that the arithmetic of the ledger stays valid. A
    list that the client read and sends back must not count the shorter replacement text instead.
    """
    if not Message.objects.filter(memory=memory, redacted_step__isnull=False).exists():
        return list(arrivals)
    stored = {message_to_json(entry.message): entry.tokens for entry in window.with_messages()}
    return [
        replace(entry, tokens=stored.get(message_to_json(entry.message), entry.tokens))
        for entry in arrivals
    ]
