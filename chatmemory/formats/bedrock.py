"""Amazon Bedrock's Converse: `{"system": […], "messages": [{"role": …, "content": [block]}, …]}`.

A block is an object with one property, whose name is the kind of the block: `{"text": …}`,
`{"toolUse": {…}}`. Source of the shapes: Amazon Bedrock's API reference, Converse, ContentBlock.

- An item of `messages` from the user may have tool results. Each tool result becomes a message, and
  the text of the item becomes another message.
- A tool result has text, JSON or media. A `json` block is read as text, and is written as a `json`
  block again. All other texts are written as `text` blocks, even if the text is JSON.
- Reasoning is written only with the model's signature. Reasoning without a signature is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.formats.format import RawTranscript, Response
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    is_list_of,
    list_in,
    object_in,
    objects_in,
    text_in,
    unknown,
)
from chatmemory.formats.parts import BlockWriter, TurnReader, data_of, media_content
from chatmemory.formats.readers_and_writers import (
    ReadMessage,
    answer_of,
    find_turns,
    stand_in,
    two_way,
)
from chatmemory.messages.contents import Content, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
)

_MEDIA = {"image": "image", "document": "file", "video": "video", "audio": "audio"}
_OF_MODEL = ("text", "toolUse", "reasoningContent", "citationsContent")
_OTHERS = ("toolResult", "guardContent", "searchResult", "cachePoint")
_KINDS = (*_OF_MODEL, *_MEDIA, *_OTHERS)

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format. The value is a
    list of messages, a request with the list under `messages`, or a single response.
    """
    output = dict_in(value, "output")
    if _are_turns([dict_in(output, "message")]):
        about = {name: each for name, each in value.items() if name != "output"}
        return RawTranscript(None, [Response(output["message"], about)])
    return find_turns(value, _are_turns, names=("id", "conversation_id"), beside=("system",))


def _are_turns(value: JsonValue) -> bool:
    """Return whether a list has messages with Bedrock's blocks, which have no type. Other
    providers' blocks have a type.
    """
    if not is_list_of(value, "role", "content"):
        return False
    blocks = [block for turn in value for block in list_in(turn, "content")[:1]]
    return bool(blocks) and all(_kind(block) in _KINDS for block in blocks)


def _kind(part: JsonValue) -> str:
    """Return the property that names a block's kind. Returns "" for a value that is no block of
    Bedrock.
    """
    if not isinstance(part, dict) or not part or "type" in part:
        return ""
    return next((name for name in _KINDS if name in part), next(iter(part)))


def _is_result(part: JsonValue) -> bool:
    return _kind(part) == "toolResult"


class _Reader(TurnReader):
    within_turn = "content"
    type_of = staticmethod(_kind)
    is_result = staticmethod(_is_result)

    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        if "role" not in turn and "system" in turn:
            blocks = objects_in(turn, "system", "block")
            texts = [each.text for block in blocks for each in self.texts(block)]
            yield from self.system("\n".join(texts))
            return
        blocks = objects_in(turn, "content", "block")
        match turn.get("role"):
            case "user":
                read = self.user(blocks)
            case "assistant":
                read = self.assistant(blocks)
            case "system":
                texts = [each.text for block in blocks for each in self.texts(block)]
                yield from self.system("\n".join(texts)) if texts else [CustomMessage()]
                return
            case role:
                raise unknown("role", role, ("user", "assistant", "system"))
        yield from self.joined(turn, read)

    def is_model_part(self, block: JsonValue) -> bool:
        return _kind(block) in (*_OF_MODEL, "toolResult", *_MEDIA)

    def texts(self, block: JsonDict) -> list[TextContent]:
        return [each for each in self.contents(block) if isinstance(each, TextContent)]

    def contents(self, block: JsonDict) -> list[Content]:
        kind = _kind(block)
        body = block.get(kind)
        match kind:
            case "text":
                return [TextContent(text_in(block, "text") or "")]
            case "json":
                return [TextContent(arguments_text(body) or "")]
            case "guardContent":
                inner = dict_in(block, kind)
                if "image" in inner:
                    return self.contents({"image": inner["image"]})
                return [TextContent(text_in(dict_in(inner, "text"), "text") or "")]
            case "searchResult" | "citationsContent":
                parts = dicts_in(body, "content")
                title = [TextContent(each) for each in _title(body)]
                return title + [each for part in parts for each in self.contents(part)]
            case _ if kind in _MEDIA:
                return [_media(_MEDIA[kind], object_in(body, f"{kind} must be an object"))]
        return []

    def ai_message(self, blocks: JsonList) -> AiMessage:
        texts: list[str] = []
        thoughts, calls = [], []
        for block in blocks:
            if _kind(block) == "toolUse":
                body = object_in(block["toolUse"], "toolUse must be an object")
                id, name = text_in(body, "toolUseId"), text_in(body, "name")
                calls.append(self.calls.request(id, name, body.get("input")))
            elif _kind(block) == "reasoningContent":
                reasoning = dict_in(dict_in(block, "reasoningContent"), "reasoningText")
                thoughts.append(text_in(reasoning, "text"))
            else:
                found = self.contents(block)
                texts += [c.text if isinstance(c, TextContent) else "[image]" for c in found]
        return answer_of(texts, calls, thoughts)

    def result(self, block: JsonValue) -> ToolExecutionResultMessage:
        body = object_in(block["toolResult"], "toolResult must be an object")
        id, name = self.calls.answered(text_in(body, "toolUseId"))
        parts = objects_in(body, "content", "block") if body.get("content") else []
        contents = [each for part in parts for each in self.contents(part)]
        if parts and not contents:
            contents = [stand_in(_kind(parts[0]), None)]
        is_error = {"error": True, "success": False}.get(str(body.get("status")))
        return ToolExecutionResultMessage(id, name, contents or "", is_error)


def _title(body: JsonValue) -> list[str]:
    title = body.get("title") if isinstance(body, dict) else None
    return [title] if isinstance(title, str) and title else []


def _media(kind: str, body: JsonDict) -> Content:
    source = dict_in(body, "source")
    text = text_in(source, "text")
    if text is not None:
        return TextContent(text)
    url = text_in(dict_in(source, "s3Location"), "uri")
    format, data = text_in(body, "format"), text_in(source, "bytes")
    if not url and not data:
        return stand_in(kind, text_in(body, "name"))
    type = "application" if kind == "file" else kind
    return media_content(kind, url, data, f"{type}/{format}" if format else None)


# Writing


class _Writer(BlockWriter):
    format = "bedrock"
    is_result = staticmethod(_is_result)

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"system": [{"text": self.beside_turns(message)}]}

    def put_beside(self, beside: JsonDict, value: JsonDict) -> None:
        """Write the text of every system message under `system`."""
        beside["system"] = [*beside.get("system", ()), *value["system"]]

    def call(self, call: ToolExecutionRequest, message: AiMessage) -> JsonDict:
        body = {"toolUseId": call.id, "name": call.name, "input": self.arguments(call)}
        return {"toolUse": body}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        id, content = self.call_of(message), self.parts(message.contents)
        body: JsonDict = {"toolUseId": id, "content": content}
        if message.is_error is not None:
            body["status"] = "error" if message.is_error else "success"
        yield {"role": "user", "content": [{"toolResult": body}]}

    def block(self, text: str) -> JsonDict:
        return {"text": text}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict | None:
        source: JsonDict = {"bytes": data_of(media)}
        if source["bytes"] is None:
            if not (media.url or "").startswith("s3://"):
                return None  # Bedrock takes no other addresses
            source = {"s3Location": {"uri": media.url}}
        name = next(name for name, each in _MEDIA.items() if each == kind)
        body: JsonDict = {"format": _format(kind, media), "source": source}
        body |= {"name": "document"} if kind == "file" else {}
        return {name: body}


def _format(kind: str, media: Media) -> str:
    if media.mime_type is None:
        return {"file": "pdf", "image": "png", "audio": "wav", "video": "mp4"}[kind]
    return media.mime_type.rpartition("/")[2]


FORMAT = two_way(find, _Reader, _Writer)
