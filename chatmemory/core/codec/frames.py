"""Frames: the JSON of messages around their text, so that a text is stored once.

Databases keep the text of a message by itself, to search it. In the JSON of most messages it is one
string, in whose place the frame has a gap. The frame of any other message is all of its JSON.
"""

from __future__ import annotations

from collections.abc import Callable

from chatmemory.core.codec.reading import message_from_json
from chatmemory.core.codec.writing import message_to_json, quoted
from chatmemory.core.contents import TextContent
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

GAP = "\x01"  # in no JSON: it is escaped there
# A quote within a string has a backslash before it, so this is never a part of one.
_BEFORE = '"text":'


def frame_of(message: ChatMessage, payload: str = "") -> str:
    """Return the frame of a message; `payload` is its JSON, where that is written already."""
    payload = payload or message_to_json(message)
    text, start = _single_text(message), payload.find(_BEFORE)
    if text is None or start < 0:
        return payload
    start, as_json = start + len(_BEFORE), quoted(text)
    if not payload.startswith(as_json, start):
        return payload
    return f"{payload[:start]}{GAP}{payload[start + len(as_json) :]}"


def payload_of(frame: str, text: str) -> str:
    """Return the JSON of a message, given its frame and its text."""
    before, gap, behind = frame.partition(GAP)
    return f"{before}{quoted(text)}{behind}" if gap else frame


def message_from_frame(frame: str, text: str) -> ChatMessage | None:
    """Return the message of a frame and its text; None for `null`.

    Raises InvalidMessage, naming the property.
    """
    kind = _PLAIN.get(frame)
    return kind(text) if kind else message_from_json(payload_of(frame, text))


def _single_text(message: ChatMessage) -> str | None:
    """Return the text of a message if its JSON has it as one string."""
    match message:
        case SystemMessage(text=text):
            return text
        case AiMessage(text=text, tool_execution_requests=()):
            return text
        case UserMessage() | ToolExecutionResultMessage():
            match message.contents:
                case (TextContent(text=text),):
                    return text
    return None


# Messages that consist of their text alone, which are most: they need no reading of JSON.
_PLAIN_KINDS: tuple[Callable[[str], ChatMessage], ...] = (SystemMessage, UserMessage, AiMessage)
_PLAIN = {frame_of(kind("text")): kind for kind in _PLAIN_KINDS}
