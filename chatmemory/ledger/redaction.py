"""Redaction: the replacement of a message, with its type but without its text.

Tool names and call ids are kept, because they connect results to their call. The replacement text
contains the number of the message, so that no two redacted messages are equal: a memory ignores a
system message that is equal to the current one. The token count is kept, so that the arithmetic of
the ledger stays valid: see `Replacement.as_it_was`. A redacted summary is still a summary, so that
another can cover it.
"""

from __future__ import annotations

import re

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.windows.compaction import is_summary, summary_message

_MARK = re.compile(r"\[redacted #(\d{1,19})\]")


def redacted(message: ChatMessage, seq: int) -> ChatMessage:
    """Return the replacement of a message."""
    text = mark_of(seq)
    match message:
        case SystemMessage():
            return SystemMessage(text)
        case UserMessage():
            return summary_message(text) if is_summary(message) else UserMessage(text)
        case AiMessage():
            return AiMessage(text, tuple(map(_without_arguments, message.tool_execution_requests)))
        case ToolExecutionResultMessage():
            return ToolExecutionResultMessage(message.id, message.tool_name, text)
    return CustomMessage({"text": text})


def mark_of(seq: int) -> str:
    """Return the text of a redacted message."""
    return f"[redacted #{seq}]"


def is_redacted(message: ChatMessage) -> bool:
    """Return whether a message is a redacted one, or a copy of one in a branch."""
    mark = _MARK.search(text_of(message))
    return mark is not None and redacted(message, int(mark[1])) == message


def _without_arguments(request: ToolExecutionRequest | None) -> ToolExecutionRequest | None:
    return ToolExecutionRequest(request.id, request.name, "{}") if request else None
