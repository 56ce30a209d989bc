"""Frames: the JSON of messages without their text.

Databases store the text of a message in a separate column, for searches. If a text is the only
content of a message, the frame is the message's JSON with a gap for this text.

For other messages, such as messages with tool calls or images, the frame is the whole JSON.
"""

from __future__ import annotations

from chatmemory.messages.codec.json_text import decode_json
from chatmemory.messages.codec.reading import message_from_json
from chatmemory.messages.codec.writing import attributes_beside, json_string, message_to_json
from chatmemory.messages.contents import TextContent
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
    with_attributes,
)

GAP = "\x01"  # never in JSON, where it is escaped
# A quote within a string has a backslash before it, so that this is never a part of one.
_BEFORE = '"text":'


def frame_of(message: ChatMessage) -> str:
    """Return the frame of a message: its JSON with a gap for its text. If a text is not the only
    content, such as in a message with tool calls, return the whole JSON.
    """
    return frame_and_size(message)[0]


def frame_and_size(message: ChatMessage) -> tuple[str, int]:
    """Return the frame of a message (see `frame_of`), and the size of the message in bytes.

    The size counts the whole JSON of the message, and the JSON of attributes that are stored
    separately.
    """
    text, frame = _single_text(message)
    if text is None:
        frame = message_to_json(message)
        return frame, _size(frame)
    as_json = json_string(text)
    if not frame:
        before, _, behind = message_to_json(message).partition(_BEFORE + as_json)
        frame = f"{before}{_BEFORE}{GAP}{behind}"
    beside = attributes_beside(message)
    return frame, _size(frame) - 1 + _size(as_json) + (_size(beside) if beside else 0)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def payload_of(frame: str, text: str) -> str:
    """Return the JSON of a message, given its frame (the JSON with a gap) and its text."""
    before, gap, behind = frame.partition(GAP)
    return f"{before}{json_string(text)}{behind}" if gap else frame


def message_from_frame(frame: str, text: str, beside: str | None = None) -> ChatMessage | None:
    """Return the message with this frame (its JSON with a gap for its text) and this text. None if
    the JSON is `null`.

    `beside` is the JSON of attributes that are stored separately, or None. Raises InvalidMessage,
    which names the wrong property.
    """
    kind = _PLAIN.get(frame)
    message = kind(text) if kind else message_from_json(payload_of(frame, text))
    return with_attributes(message, decode_json(beside)) if beside and message else message


def _single_text(message: ChatMessage) -> tuple[str | None, str]:
    """Return the text of a message, or None if its JSON does not have the text as one string. Also
    return the frame if it is the same for all such messages, else "".
    """
    match message:
        case SystemMessage(text=text):
            return text, _FRAMES[SystemMessage]
        case UserMessage(contents=(TextContent(text=text),)):
            has_more = message.name is not None or message.attributes
            return text, "" if has_more else _FRAMES[UserMessage]
        case AiMessage(text=text, tool_execution_requests=()):
            has_more = message.thinking is not None or message.attributes
            return text, "" if has_more else _FRAMES[AiMessage]
        case ToolExecutionResultMessage(contents=(TextContent(text=text),)):
            return text, ""
    return None, ""


# Most messages have only a text: their JSON need not be decoded.
_FRAMES: dict[type[SystemMessage | UserMessage | AiMessage], str] = {
    kind: message_to_json(kind("text")).replace(':"text"', f":{GAP}")
    for kind in (SystemMessage, UserMessage, AiMessage)
}
_PLAIN = {frame: kind for kind, frame in _FRAMES.items()}
