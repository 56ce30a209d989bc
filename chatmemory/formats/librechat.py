"""LibreChat's export of a conversation as JSON. This format is only read.

{"conversationId": …, "messages": [{"messageId": …, "isCreatedByUser": …, "text": …}, …]}

A recursive export has `messagesTree`, in which each message has the next messages as `children`. An
agent's answer has parts under `content`. A tool call and its result are one part. Source of the
shapes: LibreChat, the export of its client, and its types of content parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    dict_in,
    dicts_in,
    first_in,
    name_of,
    object_in,
    text_in,
    type_in,
)
from chatmemory.formats.readers_and_writers import Reader, stand_in
from chatmemory.formats.trees import format_of_tree, linked_nodes
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

NAME = "librechat"


def find(value: JsonValue) -> RawTranscript | None:
    listed = [*_flat([*dicts_in(value, "messages"), *dicts_in(value, "messagesTree")])]
    if not listed or not all("isCreatedByUser" in each for each in listed):
        return None
    values = {name_of(each, "messageId") or str(n): each for n, each in enumerate(listed)}
    nodes = linked_nodes(values, "parentMessageId")
    return RawTranscript(name_of(value, "conversationId"), nodes)


def _flat(messages: Iterable[JsonDict]) -> Iterator[JsonDict]:
    waiting = [*messages][::-1]
    while waiting:
        message = waiting.pop()
        yield message
        waiting += dicts_in(message, "children")[::-1]


def _content_of(message: JsonValue) -> JsonValue:
    return _BESIDE.without(message, "children") if isinstance(message, dict) else None


_BESIDE = Beside(
    texts=("endpoint", "iconURL", "siblingIndex"),
    wholes=("plugin", "plugins", "attachments", "feedback"),
)


class _Reader(Reader):
    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        message = object_in(turn, "a message must be an object")
        parts = dicts_in(message, "content")
        text = text_in(message, "text")
        if not any(type_in(part) == "text" for part in parts) and text:
            parts = [*parts, {"type": "text", "text": text}]
        files = {str(name): None for each in _files(message) if (name := each)}
        if message.get("isCreatedByUser"):
            self.calls.interrupted()
            contents: list[Content] = [TextContent(text) for text in map(_text, parts) if text]
            contents += [stand_in("file", name) for name in files]
            if contents:
                yield UserMessage(contents, attributes=_about(message))
            else:
                self.lose("a message without content")
            return
        yield from self.answer(parts, message)

    def answer(self, parts: Iterable[JsonDict], message: JsonMap) -> Iterator[ChatMessage]:
        """Yield the messages of an agent's answer in order. Each tool call is followed by its
        result.
        """
        texts: list[str] = []
        thoughts: list[str] = []
        for part in parts:
            match type_in(part):
                case "think":
                    thoughts.append(_text(part) or "")
                case "tool_call":
                    call = object_in(part.get("tool_call"), "a tool call must be an object")
                    text = "\n".join(texts) or None
                    thinking = "\n".join(filter(None, thoughts)) or None
                    yield AiMessage(text, (self.request(call),), thinking, _about(message))
                    texts, thoughts = [], []
                    yield from self.result(call)
                case _ if text := _text(part):
                    texts.append(text)
                case "text" | "agent_update" | "":
                    pass
                case kind:
                    self.lose(f"a part of type {kind!r}")
        if texts or thoughts:
            thinking = "\n".join(filter(None, thoughts)) or None
            yield AiMessage("\n".join(texts) or None, (), thinking, _about(message))

    def request(self, call: JsonMap) -> ToolExecutionRequest:
        inner = dict_in(call, "function") or call
        arguments = first_in(inner, "args", "arguments")
        if arguments is None:
            arguments = dict_in(call, "code_interpreter").get("input")
        name = text_in(inner, "name") or text_in(call, "type")
        return self.calls.request(text_in(call, "id"), name, arguments)

    def result(self, call: JsonMap) -> Iterator[ToolExecutionResultMessage]:
        output = call.get("output") or dict_in(call, "function").get("output")
        if isinstance(output, str) and output:
            answered = self.calls.answered(text_in(call, "id"))
            yield ToolExecutionResultMessage(*answered, output)


def _text(part: JsonMap) -> str | None:
    """Return the text of a part. The text is under the name of the part's type or under `text`, as
    a string or as an object's `value`.
    """
    for name in (type_in(part), "text", "error", "summary"):
        found = part.get(name)
        found = found.get("value") if isinstance(found, dict) else found
        if isinstance(found, str) and found:
            return found
    return None


def _files(message: JsonMap) -> Iterator[str | None]:
    for each in (*dicts_in(message, "files"), *dicts_in(message, "attachments")):
        yield text_in(each, "filename", "file_id")


def _about(message: JsonMap) -> JsonDict:
    known = {name: message.get(name) for name in ("messageId", "createdAt", "model", "error")}
    return {NAME: {name: each for name, each in known.items() if each not in (None, False)}}


def _is_empty(value: JsonValue) -> bool:
    is_one = isinstance(value, dict) and "conversationId" in value
    return is_one and value.get("messages", value.get("messagesTree")) == []


FORMAT = format_of_tree(NAME, find, _Reader, _content_of, _is_empty)
