"""Redaction: replaces the text of a message by a tombstone, such as `[redacted #12]`. The message
keeps its type.

- The history and all windows show the tombstone, also instead of the placeholder of a cleared tool
  result (see `clearing.stub_of`).
- Attributes that a client changed in a window are erased, too (see `ledger.overrides`).
- Stays keep the token counts of the erased text, so that the sums of the ledger stay valid (see
  `Replacement.as_it_was`).
- Tool names and call ids are kept, because they connect results with their calls.
- The tombstone has the number of the message, so that no two redacted messages are equal. Otherwise
  a memory would ignore a redacted system message that equals the current one.
- A redacted summary is still a summary, so that another summary can replace it.
- An index message loses the terms that only redacted messages contained (see `Index.without`).
"""

from __future__ import annotations

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
from chatmemory.messages.tombstones import TOMBSTONE, tombstone_of
from chatmemory.recall.index import blank_index, is_index
from chatmemory.windows.compaction import is_summary, summary_message


def redacted(message: ChatMessage, seq: int) -> ChatMessage:
    """Return the message that replaces a redacted message: the same type, with a tombstone such as
    `[redacted #12]` as text.
    """
    text = tombstone_of(seq)
    match message:
        case SystemMessage():
            return SystemMessage(text)
        case UserMessage():
            if is_index(message):
                return blank_index(text)
            return summary_message(text) if is_summary(message) else UserMessage(text)
        case AiMessage():
            return AiMessage(text, tuple(map(_without_arguments, message.tool_execution_requests)))
        case ToolExecutionResultMessage():
            return ToolExecutionResultMessage(message.id, message.tool_name, text)
    return CustomMessage({"text": text})


def is_redacted(message: ChatMessage) -> bool:
    """Return whether a message was redacted. Also True for the copy of a redacted message in a
    branch.
    """
    mark = TOMBSTONE.search(text_of(message))
    return mark is not None and redacted(message, int(mark[1])) == message


def _without_arguments(request: ToolExecutionRequest | None) -> ToolExecutionRequest | None:
    return ToolExecutionRequest(request.id, request.name, "{}") if request else None
