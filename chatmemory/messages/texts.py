"""Texts for people: names of messages, tool calls and tool results in readable form, and texts that
can be printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.codec import GAP, decode_json, load_json, message_from_frame
from chatmemory.messages.json_values import JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    text_of,
)

_json = json.JSONEncoder(ensure_ascii=False).encode


def named(seq: int) -> str:
    """Return the name of a message for people: `#26`, or `draft 1` for -1. Drafts have the seqs -1,
    -2, and so on.
    """
    return f"#{seq}" if seq >= 0 else f"draft {-seq}"


def printable(text: str) -> str:
    r"""Return a text that can be encoded: lone surrogates become escapes such as `\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """Return a text on one line. Control characters become spaces."""
    return "".join(each if each.isprintable() else " " for each in text)


def readable_text(message: ChatMessage) -> str:
    """Return the text of a message for people.

    A tool result begins with the name of its tool. In a message with tool calls, each call has a
    line of its own, such as `find_order(order: "A-1182")`. For any other message, the text is the
    result of `text_of`.
    """
    match message:
        case ToolExecutionResultMessage():
            return _result(message.tool_name, text_of(message))
        case AiMessage():
            requests = filter(None, message.tool_execution_requests)
            return _calls(message.text, ((each.name, each.arguments) for each in requests))
    return text_of(message)


def readable_stored_text(frame: str, text: str) -> str:
    """Return the readable text of a stored message (see `readable_text`).

    `frame` is the JSON of the message with a gap for its text. If `frame` is corrupt, return
    `text`.
    """
    try:
        match decode_json(frame.replace(GAP, "null")):
            case {"type": "TOOL_EXECUTION_RESULT", **stored} if GAP in frame:
                return _result(stored.get("toolName"), text)
            case {"type": "AI", "toolExecutionRequests": [_, *_] as requests, **stored}:
                calls = [each for each in requests if isinstance(each, dict)]
                shown = ((each.get("name"), each.get("arguments")) for each in calls)
                return _calls(stored.get("text"), shown)
        message = message_from_frame(frame, text)
    except InvalidMessage:
        return text
    return text if message is None else readable_text(message)


def _result(tool_name: JsonValue, text: str) -> str:
    return f"{tool_name or ''} {text}".strip()


def _calls(text: JsonValue, calls: Iterable[tuple[JsonValue, JsonValue]]) -> str:
    """Return a text, and calls of (name, arguments) on lines below it."""
    lines = (f"{name or ''}({_arguments(str(given or ''))})" for name, given in calls)
    return "\n".join(filter(None, (str(text or ""), *lines)))


def _arguments(text: str) -> str:
    """Return the arguments of a tool call as `key: value, …`; unchanged if they are not a JSON
    object.
    """
    try:
        arguments = load_json(text)
    except InvalidMessage:
        return text
    if not isinstance(arguments, dict):
        return text
    return ", ".join(f"{name}: {_json(value)}" for name, value in arguments.items())


QUOTED = 140  # characters in a quote
BEFORE_FACT = 40


def quoted(text: str, fact: str) -> str:
    """Return a part of a text that shows a fact, on one line. The part has at most QUOTED
    characters, plus "…" where text is cut off.

    The part is usually the beginning of the text. If the fact comes later in the text, the part
    begins shortly before the fact.
    """
    words = " ".join(text.split())
    place = words.find(fact)
    begin = 0 if place + len(fact) <= QUOTED else max(0, place - BEFORE_FACT)
    part = words[begin : begin + QUOTED]
    return f"{'…' if begin else ''}{part.rstrip()}{'…' if begin + QUOTED < len(words) else ''}"


def question_in(text: str) -> str:
    """Return the part of a text that ends with the last question mark, on one line. The part has at
    most QUOTED characters.

    Without a question mark, return the end of the text. If the beginning is cut off, "…" is put in
    front.
    """
    words = " ".join(text.split())
    end = words.rfind("?") + 1 or len(words)
    begin = max(0, end - QUOTED)
    return f"{'…' if begin else ''}{words[begin:end].lstrip()}"
