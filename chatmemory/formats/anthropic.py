"""Anthropic Messages: `{"system": …, "messages": [{"role": …, "content": [block, …]}, …]}`.

Source of the shapes: Anthropic's API reference, Messages.

- An item of `messages` from the user may have tool results. Each tool result becomes a message, and
  the text of the item becomes another message.
- An item of the assistant may have results of tools that ran at Anthropic or on an MCP server. Such
  an item becomes several messages: a tool call, its tool result, and the text after it. A JSON
  result becomes JSON text, without its encrypted parts.
- An item with the role `system` that only changes the tools has no text. It becomes a custom
  message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import RawTranscript, Response
from chatmemory.formats.json_properties import (
    arguments_text,
    is_list_of,
    list_in,
    object_in,
    part_text,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import BlockWriter, TurnReader, data_of, mime_type_of
from chatmemory.formats.readers_and_writers import ReadMessage, find_turns, stand_in, two_way
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import (
    Content,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    TextContent,
)
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    text_of,
)

_ROLES = ("user", "assistant", "system")
_OWN_BLOCKS = {
    *("tool_use", "server_tool_use", "mcp_tool_use", "redacted_thinking"),
    *("compaction", "container_upload", "search_result", "tool_addition", "tool_removal"),
}

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format. The value is a
    list of messages, an object with the list under `messages`, or a single answer.
    """
    if isinstance(value, dict) and _is_answer(value):
        known = ("type", "role", "content")
        about = {k: each for k, each in value.items() if k not in known and each is not None}
        turn = {"role": "assistant", "content": value["content"]}
        return RawTranscript(None, [Response(turn, about)])
    return find_turns(value, _are_turns, names=("id", "conversation_id"), beside=("system",))


def claims(value: JsonValue) -> bool:
    """Return whether a value can only be Anthropic's.

    True for a conversation with a system prompt outside the list of messages, or with a block that
    only Anthropic writes. Also True for a single answer.
    """
    found = find(value)
    if found is None or isinstance(found.turns[0], Response):
        return found is not None
    has_system = "role" not in found.turns[0]
    turns = islice(found.turns, has_system, None)
    own = (_is_own(block) for turn in turns for block in list_in(turn, "content"))
    return has_system or any(own)


def _are_turns(value: JsonValue) -> bool:
    return is_list_of(value, "role", "content") and all(map(_may_be_turn, value))


def _is_answer(value: JsonDict) -> bool:
    """Return whether an object is an answer of Anthropic's model. OpenAI's answers have other types
    of blocks.
    """
    blocks = value.get("content")
    return (
        (value.get("type") == "message" or "stop_reason" in value)
        and value.get("role", "assistant") == "assistant"
        and isinstance(blocks, list)
        and not any(type_in(block) in ("", "output_text", "refusal") for block in blocks)
    )


def _may_be_turn(turn: JsonValue) -> bool:
    """Return whether a value has a role and content like Anthropic's. Bedrock's blocks have no
    type.
    """
    if not isinstance(turn, dict) or turn.get("role") not in _ROLES or "tool_calls" in turn:
        return False
    return all("type" in each for each in list_in(turn, "content") if isinstance(each, dict))


def _is_own(part: JsonValue) -> bool:
    kind = type_in(part)
    is_thinking = kind == "thinking" and isinstance(part.get("thinking"), str)
    has_source = kind in ("image", "document") and isinstance(part.get("source"), dict)
    return kind in _OWN_BLOCKS or is_result(part) or is_thinking or has_source


def is_result(part: JsonValue) -> bool:
    return type_in(part).endswith("tool_result")


class _Reader(TurnReader):
    within_turn = "content"
    type_of = staticmethod(type_in)
    is_result = staticmethod(is_result)

    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        if "role" not in turn and "system" in turn:
            yield from self.system(_text(blocks_of(turn["system"])))
            return
        role, blocks = turn.get("role"), blocks_of(turn.get("content"))
        if role not in _ROLES:
            raise unknown("role", role, _ROLES)
        if "content" not in turn:
            raise self.nothing_in(blocks)
        if role == "system":
            text = _text(blocks)
            yield from [CustomMessage()] if blocks and text is None else self.system(text)
        else:
            read = self.user(blocks) if role == "user" else self.assistant(blocks)
            yield from self.joined(turn, read)

    def is_model_part(self, block: JsonValue) -> bool:
        kind = type_in(block)
        is_known = kind in ("text", "thinking", "redacted_thinking", "compaction")
        return is_known or kind.endswith("tool_use") or is_result(block)

    def contents(self, block: JsonDict) -> list[Content]:
        match type_in(block):
            case "text":
                return [TextContent(part_text(block))]
            case "image" | "document" as kind:
                return self.media(
                    kind,
                    object_in(block.get("source"), f"{kind} needs the field source, an object"),
                )
            case "search_result":
                return self.all_contents(block.get("content"))
            case "container_upload":
                return [stand_in("file", text_in(block, "file_id"))]
            case "tool_reference":
                return [stand_in("tool", text_in(block, "tool_name"))]
        return []

    def all_contents(self, content: JsonValue) -> list[Content]:
        return [each for block in blocks_of(content) for each in self.contents(block)]

    def media(self, kind: str, source: JsonDict) -> list[Content]:
        data, url = text_in(source, "data"), text_in(source, "url")
        match source.get("type"):
            case "base64" | "url" if kind == "image":
                image = Image(url, data, text_in(source, "media_type"))
                return [ImageContent(image, DetailLevel.AUTO)]
            case "base64" | "url":
                return [PdfFileContent(PdfFile(url, data, text_in(source, "media_type")))]
            case "text":
                return [TextContent(data or "")]
            case "content":
                return self.all_contents(source.get("content"))
            case "file":
                return [stand_in("file", text_in(source, "file_id"))]
        return []

    def ai_message(self, blocks: JsonList) -> AiMessage:
        calls, thoughts = [], []
        types: dict[str | None, str] = {}
        for block in blocks:
            kind = type_in(block)
            if kind == "thinking":
                thoughts.append(text_in(block, "thinking"))
            elif kind.endswith("tool_use"):
                id, name = text_in(block, "id"), text_in(block, "name")
                calls.append(self.calls.request(id, name, block.get("input")))
                types |= {} if kind == "tool_use" else {calls[-1].id: kind}
        own = {self.format: {"types": types}} if types else None
        return AiMessage(_text(blocks), calls, "\n".join(filter(None, thoughts)) or None, own)

    def result(self, block: JsonDict) -> ToolExecutionResultMessage:
        kind = type_in(block)
        own = {} if kind == "tool_result" else {self.format: {"type": kind}}
        id, name = self.calls.answered(text_in(block, "tool_use_id"))
        content, is_error = block.get("content"), block.get("is_error")
        if kind in ("tool_result", "mcp_tool_result"):
            contents = self.all_contents(content)
            if content and not contents:
                contents = [stand_in(type_in(content[0]), None)]
        else:
            contents, is_error = server_result(content)
        return ToolExecutionResultMessage(id, name, contents or "", is_error, own)


def server_result(content: JsonValue) -> tuple[list[Content], bool | None]:
    """Return the result of a tool that ran at Anthropic, as contents. The second item is True if
    the result is an error, else None.
    """
    is_error = True if type_in(content).endswith("_error") else None
    return [TextContent(arguments_text(_readable(content)) or "")], is_error


def blocks_of(content: JsonValue) -> JsonList:
    """Return content as blocks. A string becomes one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        raise InvalidMessage("content must be a string or a list of blocks")
    return [object_in(block, "a block of the content must be an object") for block in content or ()]


def _text(blocks: Sequence[JsonValue]) -> str | None:
    """Return the joined texts of blocks, or None if no block has text."""
    named = {"text": "text", "compaction": "content"}
    texts = [
        part_text(block) if name == "text" else text_in(block, name)
        for block in blocks
        if (name := named.get(type_in(block)))
    ]
    texts = [text for text in texts if text is not None]
    return "\n".join(filter(None, texts)) if texts else None


def _readable(value: JsonValue) -> JsonValue:
    """Return the result of a tool that ran at Anthropic, without its encrypted and base64 parts."""
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_opaque = value.get("type") == "base64"
    return {
        name: _readable(each)
        for name, each in value.items()
        if not name.startswith("encrypted_") and not (is_opaque and name == "data")
    }


# Writing


class _Writer(BlockWriter):
    format = "anthropic"
    is_result = staticmethod(is_result)

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"system": self.beside_turns(message)}

    def put_beside(self, beside: JsonDict, value: JsonDict) -> None:
        """Write the text of every system message under `system`."""
        if "system" in beside:
            value = {"system": blocks_of(beside["system"]) + blocks_of(value["system"])}
        beside.update(value)

    def call(self, call: ToolExecutionRequest, message: AiMessage) -> JsonDict:
        kind = self.kind_of_call(message, call.id, "tool_use")
        return {"type": kind, "id": call.id, "name": call.name, "input": self.arguments(call)}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        kind = self.kind_of_result(message, "tool_result")
        block: JsonDict = {"type": kind, "tool_use_id": self.call_of(message)}
        if kind not in ("tool_result", "mcp_tool_result"):
            block["content"] = decoded(text_of(message))  # text if an edit left no JSON
        else:
            if blocks := self.parts(message.contents):
                block["content"] = blocks
            if message.is_error is not None:
                block["is_error"] = message.is_error
        yield {"role": "user" if kind == "tool_result" else "assistant", "content": [block]}

    def block(self, text: str) -> JsonDict:
        return {"type": "text", "text": text}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict | None:
        if kind not in ("image", "file"):
            return None
        source = {"type": "url", "url": media.url}
        if data := data_of(media):
            source = {"type": "base64", "media_type": mime_type_of(kind, media), "data": data}
        return {"type": "image" if kind == "image" else "document", "source": source}


FORMAT = two_way(find, _Reader, _Writer, claims=claims)
