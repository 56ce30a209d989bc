"""ShareGPT: `{"conversations": [{"from": "human", "value": …}, …]}`, without call ids.

Tool calls are turns from `function_call` whose value is JSON; `observation` turns answer them, in
the order of the calls. Calls in a row, and the words just before them, are one AI message: a model
that says something and calls two tools takes three turns here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from chatmemory.core.codec import load_json
from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    Content,
    CustomMessage,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.formats.base import (
    Calls,
    Loss,
    RawTranscript,
    Rendered,
    Transcript,
    arguments_text,
    is_list_of,
    name_of,
    objects,
    unread,
)

NAME = "sharegpt"

_HUMAN = ("human", "user")
_AI = ("gpt", "assistant", "model", "chatgpt", "bing", "bard")
_CALL = ("function_call", "tool_call")
_RESULT = ("observation", "tool", "tool_response", "function_response")


def find(value: Any) -> RawTranscript | None:
    if is_list_of(value, "from", "value"):
        return RawTranscript(None, value)
    if not isinstance(value, dict) or not is_list_of(value.get("conversations"), "from"):
        return None
    turns = list(value["conversations"])
    if value.get("system"):
        turns.insert(0, {"from": "system", "value": value["system"]})
    tools = value.get("tools")
    losses = list(unread("conversation", value, ("id", "conversations", "system", "tools")))
    if tools not in (None, "", "[]", []):
        losses.append(Loss("tools", "the definitions of the tools"))
    return RawTranscript(name_of(value, "id"), turns, tuple(losses))


def parse(turns: Sequence[Any]) -> Transcript:
    """Raises UnreadableTranscript, naming the message."""
    reader = _Reader()
    messages: list[ChatMessage] = []
    for index, turn in objects(turns):
        try:
            for message in reader.read(index, turn):
                _append(messages, message)
        except InvalidMessage as error:
            raise UnreadableTranscript(index, str(error)) from error
    return Transcript(None, tuple(messages), tuple(reader.losses))


def _append(messages: list[ChatMessage], message: ChatMessage) -> None:
    """Add a message; calls join an AI message just before them."""
    last = messages[-1] if messages else None
    calls = message.tool_execution_requests if isinstance(message, AiMessage) else ()
    if calls and isinstance(last, AiMessage):
        messages[-1] = AiMessage(last.text, last.tool_execution_requests + calls)
    else:
        messages.append(message)


class _Reader:
    def __init__(self) -> None:
        self.calls = Calls()
        self.losses: list[Loss] = []

    def read(self, index: int, turn: dict[str, Any]) -> Iterator[ChatMessage]:
        who, value = turn.get("from"), turn.get("value")
        if not isinstance(value, str):
            raise UnreadableTranscript(index, "value must be a string")
        self.losses += unread(f"message {index + 1}", turn, ("from", "value"))
        if who == "system":
            if all(character <= " " for character in value):
                self.losses.append(Loss(f"message {index + 1}", "a blank system message"))
            else:
                yield SystemMessage(value)
        elif who in _HUMAN:
            self.calls.interrupted()
            yield UserMessage(value)
        elif who in _AI:
            yield AiMessage(value)
        elif who in _CALL:
            yield AiMessage(None, tuple(self.requests(index, value)))
        elif who in _RESULT:
            id, name = self.calls.answered(None)
            yield ToolExecutionResultMessage(id, name, value)
        else:
            raise UnreadableTranscript(index, f"unknown speaker {who!r}")

    def requests(self, index: int, value: str) -> Iterator[ToolExecutionRequest]:
        for call in self.decoded(index, value):
            name, arguments = call.get("name"), arguments_text(call.get("arguments"))
            self.losses += unread(f"message {index + 1}", call, ("name", "arguments"))
            yield ToolExecutionRequest(self.calls.opened(None, name), name, arguments)

    def decoded(self, index: int, value: str) -> list[dict[str, Any]]:
        """The calls of a turn; text that is no call becomes the arguments of a nameless one."""
        try:
            calls = load_json(value)
        except InvalidMessage:
            calls = None
        calls = calls if isinstance(calls, list) else [calls]
        if not calls or not all(map(_is_call, calls)):
            self.losses.append(Loss(f"message {index + 1}", "the name of a malformed tool call"))
            return [{"arguments": value}]
        return calls


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def render(messages: Sequence[ChatMessage]) -> Rendered:
    values: list[dict[str, Any]] = []
    losses: list[Loss] = []
    calls = Calls()
    for index, message in enumerate(messages):
        losses += [
            Loss(f"message {index + 1}", what)
            for what in (*_lost(message), *_lost_pairing(message, calls))
        ]
        values += _turns(message)
    return Rendered(values, tuple(losses))


def _turns(message: ChatMessage) -> Iterator[dict[str, Any]]:
    match message:
        case SystemMessage():
            yield {"from": "system", "value": message.text}
        case UserMessage():
            yield {"from": "human", "value": text_of(message)}
        case AiMessage():
            calls = [call for call in message.tool_execution_requests if call is not None]
            if message.text is not None or not calls:
                yield {"from": "gpt", "value": message.text or ""}
            if calls:
                written = [_call(call) for call in calls]
                value = json.dumps(written[0] if len(written) == 1 else written, ensure_ascii=False)
                yield {"from": "function_call", "value": value}
        case ToolExecutionResultMessage():
            yield {"from": "observation", "value": text_of(message)}


def _call(call: ToolExecutionRequest) -> dict[str, Any]:
    """Arguments that are no JSON object stay text, so that reading gives the same text back."""
    try:
        arguments = load_json(call.arguments or "{}")
        arguments_text(arguments)
    except InvalidMessage:
        arguments = None
    return {
        "name": call.name or "",
        "arguments": arguments if isinstance(arguments, dict) else call.arguments,
    }


def _lost(message: ChatMessage) -> Iterator[str]:
    if isinstance(message, CustomMessage):
        yield f"a whole {message.type} message"
    elif getattr(message, "attributes", None):
        yield "attributes"
    match message:
        case UserMessage():
            if message.name:
                yield "the name of the user"
            yield from _lost_contents(message.contents)
        case AiMessage():
            if message.thinking:
                yield "thinking"
            if None in message.tool_execution_requests:
                yield "an empty tool call"
        case ToolExecutionResultMessage():
            if message.is_error:
                yield "that the result is an error"
            yield from _lost_contents(message.contents)


def _lost_contents(contents: Sequence[Content | None]) -> Iterator[str]:
    """Media stand as words in the text."""
    for content in contents:
        if not isinstance(content, TextContent):
            yield "empty content" if content is None else f"{content.type.lower()} content"
    if len(contents) > 1:
        yield "how the text is divided into parts"


def _lost_pairing(message: ChatMessage, calls: Calls) -> Iterator[str]:
    """Reading gives a result the oldest open call: a loss where that is not the one it answers."""
    match message:
        case UserMessage():
            calls.interrupted()
        case AiMessage():
            for call in message.tool_execution_requests:
                if call is not None:
                    calls.opened(call.id, call.name)
        case ToolExecutionResultMessage():
            id, name = calls.answered(None)
            if message.id is not None and message.id != id:
                yield "which call the result answers"
            elif message.tool_name not in (None, name):
                yield "the name of the tool"
