"""LlamaIndex's chat messages, the JSON of its ChatMessage.

    {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": …}]}

Calls are blocks of their message, or in older ones OpenAI's objects among its additional_kwargs,
where a result names its call. Source of the shapes: llama_index.core.base.llms.types 0.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.contents import Content, DetailLevel, ImageContent, TextContent
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.conversion import (
    Reader,
    Writer,
    arguments_text,
    ids_of_calls,
    is_list_of,
    json_object,
    object_in,
    stand_in,
    text_in,
)
from chatmemory.formats.format import Format, RawTranscript, Rendering, Transcript
from chatmemory.formats.media import DETAILS, data_of, media_content, media_of, mime_type_of

_NAME = "llama_index"
# The properties of blocks that have the data of media, and their type
_MEDIA = {
    "image": ("image", "image_mimetype"),
    "audio": ("audio", "format"),
    "video": ("video", "video_mimetype"),
    "document": ("data", "document_mimetype"),
}

# Reading


def find(value: Any) -> RawTranscript | None:
    """Return a list of messages, each with its role and its blocks."""
    is_own = is_list_of(value, "role", "blocks") and isinstance(value[0]["blocks"], list)
    return RawTranscript(None, value) if is_own else None


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    return _Reader().read_all(turns, after)


class _Reader(Reader):
    def read(self, turn: Any) -> Iterator[ChatMessage]:
        turn = object_in(turn, "a message must be a JSON object")
        blocks = turn.get("blocks")
        if not isinstance(blocks, list):
            raise InvalidMessage("blocks must be a list")
        blocks = [object_in(block, "a block must be an object") for block in blocks]
        more = turn.get("additional_kwargs")
        about = more if isinstance(more, dict) else {}
        match turn.get("role"):
            case "system" | "developer":
                yield from self.system("\n".join(_texts(blocks)))
            case "user":
                self.calls.interrupted()
                yield UserMessage(_contents(blocks))
            case "assistant" | "chatbot" | "model":
                yield self.answer(blocks, about)
            case "tool" | "function":
                id, name = text_in(about, "tool_call_id"), text_in(about, "name")
                yield ToolExecutionResultMessage(*self.calls.answered(id, name), _contents(blocks))
            case role:
                known = "system, developer, user, assistant, chatbot, model, tool, function"
                raise InvalidMessage(f"unknown role {role!r}: one of {known}")

    def answer(self, blocks: Sequence[dict[str, Any]], about: Mapping[str, Any]) -> AiMessage:
        own = [block for block in blocks if block.get("block_type") == "tool_call"]
        calls = [
            self.call(block.get("tool_call_id"), block.get("tool_name"), block.get("tool_kwargs"))
            for block in own
        ]
        older = about.get("tool_calls") if not own else None
        for each in older if isinstance(older, list) else ():
            function = object_in(each, "a tool call must be an object").get("function")
            function = object_in(function, "a tool call needs a function")
            calls.append(self.call(each.get("id"), function.get("name"), function.get("arguments")))
        texts = _texts(blocks)
        thoughts = [
            text_in(block, "content") for block in blocks if block.get("block_type") == "thinking"
        ]
        text = "\n".join(texts) if texts else None
        return AiMessage(text, calls, "\n".join(filter(None, thoughts)) or None)

    def call(self, id: Any, name: Any, arguments: Any) -> ToolExecutionRequest:
        given = {"id": id, "name": name}
        name = text_in(given, "name")
        id = self.calls.opened(text_in(given, "id"), name)
        return ToolExecutionRequest(id, name, arguments_text(arguments))


def _texts(blocks: Iterable[dict[str, Any]]) -> list[str]:
    contents = (_content(block) for block in blocks)
    return [each.text for each in contents if isinstance(each, TextContent)]


def _contents(blocks: Iterable[dict[str, Any]]) -> list[Content]:
    return [each for block in blocks if (each := _content(block)) is not None] or [TextContent("")]


def _content(block: Mapping[str, Any]) -> Content | None:
    """Return a block as content; None for one that says nothing there, such as a cache point."""
    kind = block.get("block_type")
    if kind == "text":
        return TextContent(text_in(block, "text") or "")
    if kind in ("citable", "citation"):
        return stand_in("source", text_in(block, "title"))
    if kind not in _MEDIA:
        return None
    data, type = _MEDIA[kind]
    mime_type = text_in(block, type)
    if kind == "audio" and mime_type:
        mime_type = f"audio/{mime_type}"
    detail = DETAILS.get(text_in(block, "detail") or "auto", DetailLevel.AUTO)
    kind = "file" if kind == "document" else kind
    return media_content(kind, text_in(block, "url"), text_in(block, data), mime_type, detail)


# Writing


def render(messages: Iterable[ChatMessage]) -> Rendering:
    return _Writer(ids_of_calls(messages)).write_each(messages)


class _Writer(Writer):
    format = _NAME

    def write(self, message: ChatMessage) -> Iterator[dict[str, Any]]:
        match message:
            case SystemMessage():
                yield _message("system", [_text(message.text)])
            case UserMessage():
                self.calls.interrupted()
                if message.name:
                    self.lose("the name of the user")
                yield _message("user", self.blocks(message.contents))
            case AiMessage():
                yield _message("assistant", [*self.said(message)])
            case ToolExecutionResultMessage():
                if message.is_error:
                    self.lose("that the result is an error")
                id, name = self.calls.answered(message.id)
                said = message.tool_name if message.tool_name != name else None
                about = {"tool_call_id": id, "name": said}
                more = {key: value for key, value in about.items() if value}
                yield _message("tool", self.blocks(message.contents), more)

    def said(self, message: AiMessage) -> Iterator[dict[str, Any]]:
        if message.thinking:
            more: dict[str, Any] = {"num_tokens": None, "additional_information": {}}
            yield {"block_type": "thinking", "content": message.thinking, **more}
        if message.text is not None:
            yield _text(message.text)
        for call in self.calls_of(message):
            arguments: Any = json_object(call.arguments or "")
            yield {
                "block_type": "tool_call",
                "tool_call_id": self.calls.opened(call.id, call.name),
                "tool_name": call.name or "",
                "tool_kwargs": (call.arguments or "") if arguments is None else arguments,
            }

    def blocks(self, contents: Sequence[Content | None]) -> list[dict[str, Any]]:
        return [block for content in contents if (block := self.block(content)) is not None]

    def block(self, content: Content | None) -> dict[str, Any] | None:
        if isinstance(content, TextContent):
            return _text(content.text)
        found = media_of(content)
        if found is None:
            self.lose("empty content" if content is None else f"{content.type.lower()} content")
            return None
        kind, media = found
        data = data_of(media)
        block = "document" if kind == "file" else kind
        name, type = _MEDIA[block]
        mime_type = mime_type_of(kind, media) if data else media.mime_type
        if kind == "audio" and mime_type:
            mime_type = mime_type.partition("/")[2]
        detail = {"detail": self.detail(content)} if isinstance(content, ImageContent) else {}
        return {"block_type": block, name: data, "url": media.url, type: mime_type, **detail}

    def detail(self, content: ImageContent) -> str | None:
        if getattr(content.image, "revised_prompt", None):
            self.lose("the revised prompt of an image")
        detail = content.detail_level.value.lower()
        if detail not in DETAILS:
            self.lose(f"the detail level {detail!r}")
            detail = "high"
        return None if detail == "auto" else detail


def _message(
    role: str, blocks: list[dict[str, Any]], more: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": more or {}, "blocks": blocks}


def _text(text: str) -> dict[str, Any]:
    return {"block_type": "text", "text": text}


def plain(given: Any) -> Any:
    """Return messages of LlamaIndex with all properties, such as the types of their blocks."""
    if isinstance(given, list | tuple):
        return [plain(each) for each in given]
    return given.model_dump(mode="json", fallback=str) if hasattr(given, "model_dump") else given


_Reader.writer = _Writer
FORMAT = Format(_NAME, find, parse, render, plain)
