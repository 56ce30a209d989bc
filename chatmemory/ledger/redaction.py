"""Redaction: what stands in place of a message, its shape without its words.

The type stays, and so do tool names and call ids, by which results find their call. The text names
the message, so that no two redacted messages are equal (a memory ignores an equal system message).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chatmemory.core.codec import message_to_json
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
from chatmemory.models import Memory, Message


def redacted(message: ChatMessage, seq: int) -> ChatMessage:
    words = mark_of(seq)
    match message:
        case SystemMessage():
            return SystemMessage(words)
        case UserMessage():
            return UserMessage(words)
        case AiMessage():
            return AiMessage(words, tuple(map(_without_arguments, message.tool_execution_requests)))
        case ToolExecutionResultMessage():
            return ToolExecutionResultMessage(message.id, message.tool_name, words)
    return CustomMessage({"text": words})


def mark_of(seq: int) -> str:
    """What stands in place of the words."""
    return f"[redacted #{seq}]"


def _without_arguments(request: ToolExecutionRequest | None) -> ToolExecutionRequest | None:
    return ToolExecutionRequest(request.id, request.name, "{}") if request else None


def with_stored_tokens(memory: Memory, window: Window, arrivals: Sequence[Entry]) -> list[Entry]:
    """The entries of a whole new list; a redacted message keeps the weight that its words had."""
    if not Message.objects.filter(memory=memory, redacted_step__isnull=False).exists():
        return list(arrivals)
    stood = {message_to_json(each.message): each.tokens for each in window.with_messages()}
    return [
        replace(entry, tokens=stood.get(message_to_json(entry.message), entry.tokens))
        for entry in arrivals
    ]
