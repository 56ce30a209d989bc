"""Redaction: the replacement of a message, with its type but without its text.

The rule of what a redaction leaves:

- The message has the words of its *tombstone*, `[redacted #12]`, everywhere. They win over whatever
  its stays show otherwise, now and later (see `ledger.overrides`).
- The stub of a redacted result has the words of the tombstone, too (see `clearing.stub_of`).
- Stays keep the token counts of the erased words, so that the arithmetic of the ledger stays valid:
  see `Replacement.as_it_was`. A stub that begins after the redaction has those of the tombstone.

Tool names and call ids are kept, because they connect results to their call. The tombstone contains
the number of the message, so that no two redacted messages are equal: a memory ignores a system
message that is equal to the current one. A redacted summary is still a summary, so that another can
cover it. An index loses the terms that only redacted messages said (see `Index.without`).
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
    """Return the replacement of a message."""
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
    """Return whether a message was redacted, or is a branch's copy of a redacted message."""
    mark = TOMBSTONE.search(text_of(message))
    return mark is not None and redacted(message, int(mark[1])) == message


def _without_arguments(request: ToolExecutionRequest | None) -> ToolExecutionRequest | None:
    return ToolExecutionRequest(request.id, request.name, "{}") if request else None
