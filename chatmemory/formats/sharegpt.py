"""ShareGPT: `{"conversations": [{"from": "human", "value": …}, …]}`, without call ids.

Tool calls are turns from `function_call` whose value is JSON; `observation` turns answer them.
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
    SystemMessage,
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
    is_list_of,
    objects,
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
    losses = (
        (Loss("tools", "the definitions of the tools"),)
        if tools not in (None, "", "[]", [])
        else ()
    )
    name = value.get("id")
    return RawTranscript(None if name is None else str(name), turns, losses)


def parse(turns: Sequence[Any]) -> Transcript:
    """Raises UnreadableTranscript, naming the message."""
    reader = _Reader()
    messages: list[ChatMessage] = []
    for index, turn in objects(turns):
        try:
            messages += reader.read(index, turn)
        except InvalidMessage as error:
            raise UnreadableTranscript(index, str(error)) from error
    return Transcript(None, tuple(messages), tuple(reader.losses))


class _Reader:
    def __init__(self) -> None:
        self.calls = Calls()
        self.losses: list[Loss] = []

    def read(self, index: int, turn: dict[str, Any]) -> Iterator[ChatMessage]:
        who, value = turn.get("from"), turn.get("value")
        if not isinstance(value, str):
            raise UnreadableTranscript(index, "value must be a string")
        if who == "system":
            if all(character <= " " for character in value):
                self.losses.append(Loss(f"message {index + 1}", "a blank system message"))
            else:
                yield SystemMessage(value)
        elif who in _HUMAN:
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
            name, arguments = call.get("name"), call.get("arguments")
            name = name if isinstance(name, str) else None
            if arguments is not None and not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)
            yield ToolExecutionRequest(self.calls.opened(None, name), name, arguments)

    def decoded(self, index: int, value: str) -> list[dict[str, Any]]:
        """The calls of a turn; text that is no call becomes the arguments of a nameless one."""
        try:
            calls = load_json(value)
        except InvalidMessage:
            calls = None
        calls = calls if isinstance(calls, list) else [calls]
        if not calls or not all(isinstance(call, dict) for call in calls):
            self.losses.append(Loss(f"message {index + 1}", "the name of a malformed tool call"))
            return [{"arguments": value}]
        return calls


def render(messages: Sequence[ChatMessage]) -> Rendered:
    values: list[dict[str, Any]] = []
    losses: list[Loss] = []
    for index, message in enumerate(messages):
        losses += [Loss(f"message {index + 1}", what) for what in _lost(message)]
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
    try:
        arguments = load_json(call.arguments or "{}")
    except InvalidMessage:
        arguments = call.arguments
    return {"name": call.name, "arguments": arguments}


def _lost(message: ChatMessage) -> Iterator[str]:
    if getattr(message, "attributes", None):
        yield "attributes"
    match message:
        case UserMessage() if message.name:
            yield "the name of the user"
        case AiMessage() if message.thinking:
            yield "thinking"
        case ToolExecutionResultMessage() if message.is_error:
            yield "that the result is an error"
        case UserMessage() | AiMessage() | SystemMessage() | ToolExecutionResultMessage():
            return
        case _:
            yield f"a whole {message.type} message"
