"""ShareGPT: `{"conversations": [{"from": "human", "value": …}, …]}`, without call ids.

- An item from `function_call` is a tool call, whose value is JSON.
- Items from `observation` are the results, in the order of the calls.
- Calls in a row, and the text just before them, are one AI message. So an AI message with a text
  and two calls is three items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import Loss, RawTranscript
from chatmemory.formats.json_properties import is_list_of, json_object, name_of, unknown, unread
from chatmemory.formats.readers_and_writers import Reader, ReadMessage, Writer, two_way
from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)

_HUMAN = ("human", "user")
_AI = ("gpt", "assistant", "model", "chatgpt", "bing", "bard")
_CALL = ("function_call", "tool_call")
_RESULT = ("observation", "tool", "tool_response", "function_response")

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value: a list of messages, or an object with the list under
    `conversations`. None if the value is in another format.
    """
    if is_list_of(value, "from", "value"):
        return RawTranscript(None, value)
    if not isinstance(value, dict) or not is_list_of(value.get("conversations"), "from", "value"):
        return None
    turns = list(value["conversations"])
    if value.get("system"):
        turns.insert(0, {"from": "system", "value": value["system"]})
    tools, read = value.get("tools"), ["id", "conversations", "system"]
    are_definitions = isinstance(tools, str | list)
    losses = [*unread("conversation", value, [*read, "tools"] if are_definitions else read)]
    if are_definitions and tools not in ("", "[]", []):
        losses.append(Loss("tools", "the definitions of the tools"))
    return RawTranscript(name_of(value, "id"), turns, tuple(losses))


class _Reader(Reader):
    def add(self, read: ReadMessage) -> None:
        """Add a message. Tool calls become part of the AI message just before them."""
        last = self.messages[-1] if self.messages else None
        calls = read.message.tool_execution_requests if isinstance(read.message, AiMessage) else ()
        if calls and last and isinstance(last.message, AiMessage):
            whole = AiMessage(last.message.text, last.message.tool_execution_requests + calls)
            self.messages[-1] = ReadMessage(whole, [*last.values, *read.values])
        else:
            super().add(read)

    def read(self, turn: JsonDict) -> Iterator[ChatMessage]:
        speaker, value = turn.get("from"), turn.get("value")
        if not isinstance(value, str):
            raise InvalidMessage("value must be a string")
        if speaker == "system":
            yield from self.system(value)
        elif speaker in _HUMAN:
            self.calls.interrupted()
            yield UserMessage(value)
        elif speaker in _AI:
            yield AiMessage(value)
        elif speaker in _CALL:
            yield AiMessage(None, tuple(self.requests(value)))
        elif speaker in _RESULT:
            yield ToolExecutionResultMessage(*self.calls.answered(None), value)
        else:
            known = ("system", "human", "gpt", "function_call", "observation")
            raise unknown("speaker", speaker, known)

    def requests(self, value: str) -> Iterator[ToolExecutionRequest]:
        """Yield the tool calls of an item. Text that is no tool call becomes the arguments of a
        call without a name.
        """
        calls = decoded(value)
        calls = calls if isinstance(calls, list) else [calls]
        if not calls or not all(map(_is_call, calls)):
            self.lose("the name of a malformed tool call")
            calls = [{"arguments": value}]
        for call in calls:
            yield self.calls.request(None, call.get("name"), call.get("arguments"))


def _is_call(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


# Writing


class _Writer(Writer):
    format = "sharegpt"
    cannot_say = ("name", "thinking", "is_error")

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"from": "system", "value": message.text}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        self.lose_contents(message.contents)
        yield {"from": "human", "value": text_of(message)}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        calls = [_call(call) for call in self.calls_of(message)]
        if calls and message.text is None and isinstance(self.last, AiMessage):
            self.lose(
                "the end of the previous message: its text and these tool calls are "
                "read as one message"
            )
        if message.text is not None or not calls:
            yield {"from": "gpt", "value": message.text or ""}
        if calls:
            value = json.dumps(calls[0] if len(calls) == 1 else calls, ensure_ascii=False)
            yield {"from": "function_call", "value": value}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        self.lose_contents(message.contents)
        # Reading assigns a result to the oldest open call, whichever call it answers.
        id, name = self.calls.answered(None)
        if message.id is not None and message.id != id:
            self.lose("which call the result answers")
        elif message.tool_name not in (None, name):
            self.lose("the name of the tool")
        yield {"from": "observation", "value": text_of(message)}


def _call(call: ToolExecutionRequest) -> JsonDict:
    """Return a tool call as JSON values. Arguments that are not a JSON object stay text, so that
    they are read unchanged.
    """
    arguments = json_object(call.arguments or "{}")
    return {"name": call.name, "arguments": call.arguments if arguments is None else arguments}


FORMAT = two_way(find, _Reader, _Writer)
