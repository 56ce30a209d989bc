"""LlamaIndex's chat messages, the JSON of its ChatMessage.

    {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": …}]}

A tool call is a block of its message. In older messages, tool calls are in `additional_kwargs`, in
OpenAI's shape. A tool result names its call in `additional_kwargs`. Source of the shapes:
llama_index.core.base.llms.types 0.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    dict_in,
    is_list_of,
    json_object,
    list_in,
    object_in,
    objects_in,
    part_text,
    plain_values,
    text_in,
    unknown,
)
from chatmemory.formats.parts import PartWriter, data_of, detail_of, media_content, mime_type_of
from chatmemory.formats.readers_and_writers import Reader, answer_of, stand_in, two_way
from chatmemory.messages.contents import Content, ImageContent, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

# The properties of blocks that have the data and the type of media
_MEDIA = {
    "image": ("image", "image_mimetype"),
    "audio": ("audio", "format"),
    "video": ("video", "video_mimetype"),
    "document": ("data", "document_mimetype"),
}

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value: a list whose first message has a role and blocks. None
    for any other value.
    """
    is_own = is_list_of(value, "role", "blocks") and isinstance(value[0]["blocks"], list)
    return RawTranscript(None, value) if is_own else None


class _Reader(Reader):
    def read(self, turn: JsonDict) -> Iterator[ChatMessage]:
        blocks, about = objects_in(turn, "blocks", "block"), dict_in(turn, "additional_kwargs")
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
                known = (
                    "system",
                    "developer",
                    "user",
                    "assistant",
                    "chatbot",
                    "model",
                    "tool",
                    "function",
                )
                raise unknown("role", role, known)

    def answer(self, blocks: Sequence[JsonDict], about: JsonMap) -> AiMessage:
        own = [block for block in blocks if block.get("block_type") == "tool_call"]
        calls = [
            self.call(block.get("tool_call_id"), block.get("tool_name"), block.get("tool_kwargs"))
            for block in own
        ]
        for each in list_in(about, "tool_calls") if not own else ():
            function = object_in(each, "a tool call must be an object").get("function")
            function = object_in(function, "a tool call needs the field function, an object")
            calls.append(self.call(each.get("id"), function.get("name"), function.get("arguments")))
        thinking = (block for block in blocks if block.get("block_type") == "thinking")
        return answer_of(_texts(blocks), calls, (text_in(each, "content") for each in thinking))

    def call(self, id: JsonValue, name: JsonValue, arguments: JsonValue) -> ToolExecutionRequest:
        fields = {"id": id, "name": name}
        return self.calls.request(text_in(fields, "id"), text_in(fields, "name"), arguments)


def _texts(blocks: Iterable[JsonDict]) -> list[str]:
    contents = (_content(block) for block in blocks)
    return [each.text for each in contents if isinstance(each, TextContent)]


def _contents(blocks: Iterable[JsonDict]) -> list[Content]:
    return [each for block in blocks if (each := _content(block)) is not None] or [TextContent("")]


def _content(block: JsonMap) -> Content | None:
    """Return a block as content. None if the block has no content, such as a cache point."""
    kind = text_in(block, "block_type")
    if kind == "text":
        return TextContent(part_text(block))
    if kind in ("citable", "citation"):
        return stand_in("source", text_in(block, "title"))
    if kind not in _MEDIA:
        return None
    data, type = _MEDIA[kind]
    mime_type = text_in(block, type)
    if kind == "audio" and mime_type:
        mime_type = f"audio/{mime_type}"
    kind, url = "file" if kind == "document" else kind, text_in(block, "url")
    return media_content(kind, url, text_in(block, data), mime_type, text_in(block, "detail"))


# Writing


class _Writer(PartWriter):
    format = "llama_index"
    cannot_say = ("name", "is_error")
    has_both = True

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield _message("system", [self.text(message.text)])

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        yield _message("user", self.parts(message.contents))

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        yield _message("assistant", [*self.blocks(message)])

    def blocks(self, message: AiMessage) -> Iterator[JsonDict]:
        if message.thinking:
            more: JsonDict = {"num_tokens": None, "additional_information": {}}
            yield {"block_type": "thinking", "content": message.thinking, **more}
        if message.text is not None:
            yield self.text(message.text)
        for call in self.calls_of(message):
            arguments: JsonValue = json_object(call.arguments or "")
            yield {
                "block_type": "tool_call",
                "tool_call_id": call.id,
                "tool_name": call.name,
                "tool_kwargs": (call.arguments or "") if arguments is None else arguments,
            }

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        id, name = self.answered(message)
        about = {"tool_call_id": id, **name} if id else name
        yield _message("tool", self.parts(message.contents), about)

    def text(self, text: str) -> JsonDict:
        return {"block_type": "text", "text": text}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        data = data_of(media)
        block = "document" if kind == "file" else kind
        name, type = _MEDIA[block]
        mime_type = mime_type_of(kind, media) if data else media.mime_type
        if kind == "audio" and mime_type:
            mime_type = mime_type.partition("/")[2]
        about = {"block_type": block, name: data, "url": media.url, type: mime_type}
        if isinstance(content, ImageContent):
            detail = detail_of(content)
            about["detail"] = None if detail == "auto" else detail
        return about


def _message(role: str, blocks: list[JsonDict], more: dict[str, str] | None = None) -> JsonDict:
    return {"role": role, "additional_kwargs": more or {}, "blocks": blocks}


def plain(value: LibraryValue) -> JsonValue:
    """Return LlamaIndex's message objects as JSON values. All properties are included, such as the
    types of blocks.
    """
    return plain_values(value, lambda each: each.model_dump(mode="json", fallback=str))


FORMAT = two_way(find, _Reader, _Writer, plain=plain)
