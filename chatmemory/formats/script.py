"""Scripts: conversations as people type them, with a line such as `user: hello` for each message.

- The roles are user, ai, system, call and result, in upper or lower case. A line without a role
  continues the message before it.
- `call: find({"id": 7})` is a tool call.
- Of the tool calls after the last user message, a result answers the first that has no result yet.
  The result gets the tool name of that call.

A text that starts with a bracket is read as JSON, in one of the formats of transcripts.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from chatmemory.exceptions import InvalidValue
from chatmemory.formats.whole_files import read_transcripts
from chatmemory.messages.codec import messages_to_json
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.messages.texts import printable
from chatmemory.patterns import declared_pattern

_LINE_BREAK = declared_pattern(r"\r?\n")
_ROLE_LINE = declared_pattern(r"\A\s*(user|ai|system|call|result)\s*:\s?(.*)", re.IGNORECASE)
_WORD_LINE = declared_pattern(r"\A\s*([^\W\d]\w*)\s*:(\s.*)?")
_CALL = declared_pattern(r"\A\s*([\w.-]+)\s*\((.*)\)\s*", re.DOTALL)


def read_draft(role: str, text: str) -> list[ChatMessage]:
    """Return the messages that somebody typed. With the role "script", the text is a whole script.
    With any other role, such as "user", it is one message.

    Raises InvalidValue for a script that cannot be read.
    """
    return read_script(text) if role == "script" else [_message(role, text)]


def write_draft(message: ChatMessage) -> tuple[str, str]:
    """Return the role and the text that `read_draft` turns into this message."""
    for role, text in _spellings(message):
        if text.strip() and read_draft(role, text) == [message]:
            return role, text
    return "script", messages_to_json([message])


def read_script(text: str) -> list[ChatMessage]:
    """Return the messages of a script, in order. A script has a line such as `user: hello` for each
    message. Raises InvalidValue.
    """
    if _is_json(text):
        reading = read_transcripts(text, called="the text")
        for refused in reading.refused:
            raise InvalidValue(printable(f"{refused.where}: {refused.why}"))
        return [message for each in reading.transcripts for message in each.messages]
    return _with_tool_names([_message(role, words) for role, words in _turns(text)])


def unknown_role(text: str) -> tuple[int, str] | None:
    """Return the first line of a script with an unknown role: the number of the line, from 1, and
    the role. None if there is no such line.
    """
    for n, line in enumerate(() if _is_json(text) else _LINE_BREAK.split(text), 1):
        found = _WORD_LINE.fullmatch(line)
        if found and not _ROLE_LINE.fullmatch(line):
            return n, found[1]
    return None


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("[", "{")


def _spellings(message: ChatMessage) -> Iterator[tuple[str, str]]:
    """Yield the ways in which people would type this message, as role and text. A way may leave out
    details.
    """
    match message:
        case UserMessage():
            yield "user", text_of(message)
        case SystemMessage():
            yield "system", text_of(message)
        case ToolExecutionResultMessage():
            yield "result", text_of(message)
        case AiMessage(tool_execution_requests=()):
            yield "ai", text_of(message)
        case AiMessage(tool_execution_requests=(ToolExecutionRequest() as call,)):
            arguments = "" if call.arguments is None else f"({call.arguments})"
            yield "script", f"call: {call.name}{arguments}"


def _turns(text: str) -> Iterator[tuple[str, str]]:
    """Yield the role and the text of each message of a script."""
    role = ""
    lines: list[str] = []
    for line in _LINE_BREAK.split(text):
        found = _ROLE_LINE.fullmatch(line)
        if found:
            if role:
                yield role, "\n".join(lines)
            role, lines = found[1].lower(), [found[2]]
        elif role:
            lines.append(line)
        elif line.strip():
            raise InvalidValue(
                "the first line must begin with a role: user:, ai:, system:, call: or result:"
            )
    if role:
        yield role, "\n".join(lines).rstrip("\n")


def _message(role: str, text: str) -> ChatMessage:
    match role:
        case "system":
            return SystemMessage(text)
        case "ai":
            return AiMessage(text)
        case "result":
            return ToolExecutionResultMessage(None, None, text)
        case "call":
            found = _CALL.fullmatch(text)
            name, arguments = (found[1], found[2]) if found else (text.strip(), None)
            return AiMessage(None, (ToolExecutionRequest(None, name, arguments),))
    return UserMessage(text)


def _with_tool_names(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with tool names: each result gets the name of its call. A result without
    a call gets the name of the result before it.
    """
    open_calls: deque[str | None] = deque()
    name: str | None = None
    named: list[ChatMessage] = []
    for message in messages:
        match message:
            case AiMessage(tool_execution_requests=requests):
                open_calls.extend(request.name for request in requests if request)
            case ToolExecutionResultMessage():
                name = open_calls.popleft() if open_calls else name
                message = ToolExecutionResultMessage(None, name, message.contents)
            case UserMessage():  # earlier calls stay without a result
                open_calls.clear()
        named.append(message)
    return named
