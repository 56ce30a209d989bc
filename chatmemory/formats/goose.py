"""Goose: output of `goose session export --format json`, and the sessions of sessions.db. This
format is only read.

    {"id": …, "working_dir": …, "conversation": [{"role": …, "created": …, "content": […]}, …]}

A tool call has a value, or an error if the model wrote the call wrongly. A tool result has a value
or an error, too. Source of the shape of a session: block/goose, crates/goose/src/session. The
shapes of messages and tables are taken from programs that read them.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.formats.account import NOTHING
from chatmemory.formats.format import Format, Kinds, RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    list_in,
    name_of,
    text_in,
    type_in,
)
from chatmemory.formats.parts import media_content, runs_of
from chatmemory.formats.readers_and_writers import answer_of, stand_in
from chatmemory.formats.sessions import SessionReader
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import ToolExecutionRequest, UserMessage

NAME = "goose"
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_CALLS = ("toolRequest", "frontendToolRequest")
_NOTICES = ("toolConfirmationRequest", "actionRequired", "systemNotification")


def find(value: JsonValue) -> RawTranscript | None:
    messages = dicts_in(value, "conversation")
    is_session = messages and not {"working_dir", "extension_data"}.isdisjoint(value)
    if not is_session or not all({"role", "content"} <= each.keys() for each in messages):
        return None
    return RawTranscript(name_of(value, "id"), list_in(value, "conversation"))


def is_empty(value: JsonValue) -> bool:
    return isinstance(value, dict) and "working_dir" in value and value.get("conversation") == []


def content_of(message: JsonValue) -> JsonValue:
    """Return the parts of a message in Goose's JSON that may have words: texts, thoughts, calls and
    results. None for a value that is no object.

    Words in these parts that are in no `ChatMessage` are reported as lost.
    """
    if not isinstance(message, dict):
        return None
    content, beside = message.get("content"), Beside().without(message, "content")
    if content == [] and not beside:
        return NOTHING
    parts = content if isinstance(content, list) else [content]
    said = [None if type_in(each) == "redactedThinking" else each for each in parts]
    return [beside, said]


class _Reader(SessionReader):
    format = NAME

    def read(self, record: JsonDict) -> None:
        if not self.built.messages:
            self.lack(_UNRECORDED)
        metadata = dict_in(record, "metadata")
        blocks = dicts_in(record, "content")
        hidden = "messages that a compaction hid from the model; memory still has them"
        self.miss(hidden, metadata.get("agentVisible") is False)
        about = {name: record.get(name) for name in ("id", "created")}
        match record.get("role"):
            case "user":
                self.user(blocks, about, by_program=metadata.get("userVisible") is False)
            case "assistant":
                self.assistant(blocks, about)

    def user(self, blocks: list[JsonDict], about: JsonDict, by_program: bool) -> None:
        for run in runs_of(blocks, _is_result):
            if _is_result(run[0]):
                self.tool_result(run[0], about)
            elif contents := [each for block in run for each in _contents(block)]:
                self.add(UserMessage(contents, attributes=self.own(about)), by_program)

    def assistant(self, blocks: list[JsonDict], about: JsonDict) -> None:
        for run in runs_of(blocks, _is_result):
            if _is_result(run[0]):
                self.tool_result(run[0], about)
                continue
            contents = [each for block in run for each in _contents(block)]
            texts = [each.text for each in contents if isinstance(each, TextContent)]
            thoughts = [text_in(each, "thinking") for each in run if type_in(each) == "thinking"]
            calls = [self.call(each) for each in run if type_in(each) in _CALLS]
            if texts or calls or any(thoughts):
                self.add(answer_of(texts, calls, thoughts, self.own(about)))

    def call(self, block: JsonDict) -> ToolExecutionRequest:
        """Return a tool call. If the model wrote the call wrongly, its arguments are the error."""
        call = dict_in(block, "toolCall")
        value = dict_in(call, "value") or call
        arguments = value.get("arguments", call.get("error"))
        return self.calls.request(text_in(block, "id"), text_in(value, "name"), arguments)

    def tool_result(self, block: JsonDict, about: JsonDict) -> None:
        result = dict_in(block, "toolResult")
        value = result.get("value", result.get("content"))
        inner = value.get("content") if isinstance(value, dict) and "content" in value else value
        contents = [each for part in _parts(inner) for each in _contents(part)]
        if error := result.get("error"):
            contents.append(TextContent(arguments_text(error) or ""))
        failed = dict_in(result, "value").get("isError") is True
        is_error = result.get("status") == "error" or failed
        self.result(text_in(block, "id"), contents, is_error or None, about)


def _is_result(block: JsonMap) -> bool:
    return type_in(block) == "toolResponse"


def _parts(value: JsonValue) -> list[JsonDict]:
    parts = value if isinstance(value, list) else [value] if value is not None else []
    return [
        each if isinstance(each, dict) else {"type": "text", "text": arguments_text(each)}
        for each in parts
    ]


def _contents(block: JsonDict) -> Iterator[Content]:
    """Yield what people see of a block: a text, a picture or a notice."""
    kind = type_in(block)
    match kind:
        case "image":
            yield media_content("image", None, text_in(block, "data"), text_in(block, "mimeType"))
        case "thinking" | "redactedThinking" | "toolResponse":
            pass
        case kind if kind in _CALLS:
            pass
        case "resource":
            resource = dict_in(block, "resource")
            text = resource.get("text")
            uri = stand_in("file", text_in(resource, "uri"))
            yield TextContent(f"{uri.text}\n{text}") if isinstance(text, str) else uri
        case _:
            names = ("text", "msg", "message", "prompt", "reason")
            texts = [block[name] for name in names if isinstance(block.get(name), str)]
            if kind in ("text", *_NOTICES) and any(texts):
                yield TextContent(next(filter(None, texts)))


def type_of(message: JsonValue) -> str:
    return str(message.get("role"))


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    content_of=content_of,
    kinds=Kinds(type_of),
    is_empty=is_empty,
    is_whole=True,
)
