"""Anthropic Messages: `{"system": …, "messages": [{"role": …, "content": [block, …]}, …]}`.

Source of the shapes: Anthropic's API reference, Messages.

- A user's turn with tool results is a message for each result, and one for the words beside them.
- Calls of tools that run at Anthropic or on an MCP server, and their results, stand in one turn of
  the assistant: that turn is a call, its result, and the words after it. A result that is JSON has
  its JSON text, without what is encrypted.
- A system turn that only changes the tools says nothing to the model: it is a custom message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.codec import load_json
from chatmemory.core.contents import (
    Content,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    TextContent,
)
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.formats.conversion import (
    Reader,
    Response,
    Said,
    Writer,
    arguments_text,
    ids_of_calls,
    is_list_of,
    json_object,
    name_of,
    object_in,
    stand_in,
    text_in,
    unread,
)
from chatmemory.formats.format import Format, RawTranscript, Rendering, Transcript

_ROLES = ("user", "assistant", "system")
_OWN_BLOCKS = {
    *("tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "redacted_thinking"),
    *("compaction", "container_upload", "search_result", "tool_addition", "tool_removal"),
}

# Reading


def find(value: Any) -> RawTranscript | None:
    """Return a list of turns, an object that holds one under `messages`, or one answer."""
    if is_list_of(value, "role", "content"):
        return RawTranscript(None, value)
    if not isinstance(value, dict):
        return None
    if _is_answer(value):
        about = {name: each for name, each in value.items() if each is not None}
        turn = {"role": "assistant", "content": about.pop("content")}
        return RawTranscript(None, [Response(turn, _without(about, "type", "role"))])
    if not is_list_of(value.get("messages"), "role", "content"):
        return None
    system = [{"system": value["system"]}] if value.get("system") else []
    losses = unread("conversation", value, ("system", "messages", "id", "conversation_id"))
    name = name_of(value, "id", "conversation_id")
    return RawTranscript(name, [*system, *value["messages"]], tuple(losses))


def claims(value: Any) -> bool:
    """Whether a conversation has what only Anthropic has: a system prompt beside it, or a block."""
    found = find(value)
    if found is None or isinstance(found.turns[0], Response):
        return found is not None
    has_system = "role" not in found.turns[0]
    turns = found.turns[has_system:]
    own = (_is_own(block) for turn in turns for block in _listed(turn))
    return all(map(_may_be_turn, turns)) and (has_system or any(own))


def _is_answer(value: dict[str, Any]) -> bool:
    """Whether an object is a message of the assistant; those of OpenAI have other blocks."""
    blocks = value.get("content")
    return (
        (value.get("type") == "message" or "stop_reason" in value)
        and value.get("role", "assistant") == "assistant"
        and isinstance(blocks, list)
        and not any(_type(block) in ("", "output_text", "refusal") for block in blocks)
    )


def _may_be_turn(turn: Any) -> bool:
    return isinstance(turn, dict) and turn.get("role") in _ROLES and "tool_calls" not in turn


def _listed(turn: Mapping[str, Any]) -> list[Any]:
    content = turn.get("content")
    return content if isinstance(content, list) else []


def _is_own(block: Any) -> bool:
    kind = _type(block)
    is_thinking = kind == "thinking" and isinstance(block.get("thinking"), str)
    has_source = kind in ("image", "document") and isinstance(block.get("source"), dict)
    return kind in _OWN_BLOCKS or _is_server_result(kind) or is_thinking or has_source


def _type(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_server_result(kind: str) -> bool:
    return kind.endswith("_tool_result")


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    blocks = (block for turn in turns if isinstance(turn, dict) for block in _listed(turn))
    ids = (block.get("id") for block in blocks if isinstance(block, dict))
    taken = frozenset(id for id in ids if isinstance(id, str))
    return _Reader(taken | ids_of_calls(after)).read_all(turns, after)


class _Reader(Reader):
    format = "anthropic"

    def read(self, turn: Any) -> Iterator[ChatMessage | Said]:
        turn = object_in(turn, "a message must be a JSON object")
        role = "beside" if "role" not in turn and "system" in turn else turn.get("role")
        match role:
            case "beside":
                yield from self.system(_text(_blocks(turn["system"])))
            case "system":
                blocks = _blocks(turn.get("content"))
                text = _text(blocks)
                yield from [CustomMessage()] if blocks and text is None else self.system(text)
            case "user":
                yield from self.joined(turn, self.user(_blocks(turn.get("content"))))
            case "assistant":
                yield from self.joined(turn, self.assistant(_blocks(turn.get("content"))))
            case _:
                raise InvalidMessage(f"unknown role {role!r}: one of {', '.join(_ROLES)}")

    def joined(
        self, turn: dict[str, Any], parts: Iterable[tuple[ChatMessage, list[Any]]]
    ) -> Iterator[Said]:
        """Yield the messages of a turn, each with its blocks; all but the first join it."""
        whole = turn
        for place, (message, blocks) in enumerate(parts):
            if not isinstance(turn["content"], str):
                whole = {**turn, "content": blocks}
            yield Said(message, [whole], self.joins(message, place > 0))
            turn = {"role": turn["role"], "content": []}

    def joins(self, message: ChatMessage, joins: bool) -> bool | None:
        """Return what is to be known of a message; results in a row are joined anyway."""
        last = self.said[-1].message if self.said else None
        are_results = isinstance(last, ToolExecutionResultMessage) and type(last) is type(message)
        return None if joins == are_results else joins

    def user(self, blocks: list[Any]) -> Iterator[tuple[ChatMessage, list[Any]]]:
        part: list[Any] = []
        contents: list[Content] = []
        for block in blocks:
            if _type(block) == "tool_result":
                if contents:
                    yield self.words(contents), part
                    part, contents = [], []
                yield self.result(block), [*part, block]
                part = []
            else:
                part.append(block)
                contents += _contents(block)
        if part and not contents and len(part) < len(blocks):
            contents = [stand_in(_type(part[0]), None)]
        if contents:
            yield self.words(contents), part
        elif part or not blocks:
            raise _nothing_in(part)

    def words(self, contents: list[Content]) -> UserMessage:
        self.calls.interrupted()
        return UserMessage(contents)

    def assistant(self, blocks: list[Any]) -> Iterator[tuple[ChatMessage, list[Any]]]:
        if blocks and not any(map(_is_of_assistant, blocks)):
            raise _nothing_in(blocks)
        part: list[Any] = []
        for block in blocks:
            if not _is_server_result(_type(block)):
                part.append(block)
                continue
            if part:
                yield self.said_by_model(part), part
                part = []
            yield self.result(block), [block]
        if part or not blocks:
            yield self.said_by_model(part), part

    def said_by_model(self, blocks: list[Any]) -> AiMessage:
        calls, thoughts = [], []
        types: dict[str | None, str] = {}
        for block in blocks:
            kind = _type(block)
            if kind == "thinking":
                thoughts.append(text_in(block, "thinking"))
            elif kind.endswith("tool_use"):
                call = self.request(block)
                calls.append(call)
                types |= {} if kind == "tool_use" else {call.id: kind}
        own = {self.format: {"types": types}} if types else None
        return AiMessage(_text(blocks), calls, "\n".join(filter(None, thoughts)) or None, own)

    def request(self, block: dict[str, Any]) -> ToolExecutionRequest:
        name = text_in(block, "name")
        id = self.calls.opened(text_in(block, "id"), name)
        return ToolExecutionRequest(id, name, arguments_text(block.get("input")))

    def result(self, block: dict[str, Any]) -> ToolExecutionResultMessage:
        kind = _type(block)
        own = {} if kind == "tool_result" else {self.format: {"type": kind}}
        id, name = self.calls.answered(text_in(block, "tool_use_id"))
        content, is_error = block.get("content"), block.get("is_error")
        if kind in ("tool_result", "mcp_tool_result"):
            blocks = _blocks(content)
            contents = [each for inner in blocks for each in _contents(inner)]
            if blocks and not contents:
                contents = [stand_in(_type(blocks[0]), None)]
        else:
            contents = [TextContent(arguments_text(_readable(content)) or "")]
            is_error = True if _type(content).endswith("_error") else None
        return ToolExecutionResultMessage(id, name, contents or "", is_error, own)


def _blocks(content: Any) -> list[Any]:
    """Return content as blocks; a string is one text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        raise InvalidMessage("content must be a string or a list of blocks")
    return [object_in(block, "a block of the content must be an object") for block in content or ()]


def _text(blocks: Sequence[Any]) -> str | None:
    """Return the joined texts of blocks, None without any."""
    named = {"text": "text", "compaction": "content"}
    texts = [text_in(block, named[_type(block)]) for block in blocks if _type(block) in named]
    texts = [text for text in texts if text is not None]
    return "\n".join(filter(None, texts)) if texts else None


def _is_of_assistant(block: Any) -> bool:
    kind = _type(block)
    is_known = kind in ("text", "thinking", "redacted_thinking", "compaction")
    return is_known or kind.endswith("tool_use") or _is_server_result(kind)


def _nothing_in(blocks: Sequence[Any]) -> InvalidMessage:
    """Return the error of a turn that would be an empty message."""
    types = ", ".join(dict.fromkeys(repr(block.get("type")) for block in blocks))
    if not types:
        return InvalidMessage("content is missing")
    return InvalidMessage(f"no block of its content can be read: blocks of type {types}")


def _contents(block: dict[str, Any]) -> list[Content]:
    """Return a block of a user or of a result; none for one that messages have no place for."""
    match _type(block):
        case "text":
            return [TextContent(text_in(block, "text") or "")]
        case "image" | "document" as kind:
            return _media(kind, object_in(block.get("source"), f"the {kind} needs a source"))
        case "search_result":
            return [each for inner in _blocks(block.get("content")) for each in _contents(inner)]
        case "container_upload":
            return [stand_in("file", text_in(block, "file_id"))]
        case "tool_reference":
            return [stand_in("tool", text_in(block, "tool_name"))]
    return []


def _media(kind: str, source: dict[str, Any]) -> list[Content]:
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
            return [each for inner in _blocks(source.get("content")) for each in _contents(inner)]
        case "file":
            return [stand_in("file", text_in(source, "file_id"))]
    return []


def _readable(value: Any) -> Any:
    """Return the result of a server's tool without what is encrypted or base64."""
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


def _without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name not in names}


# Writing


def render(messages: Iterable[ChatMessage]) -> Rendering:
    return _Writer(ids_of_calls(messages)).write_each(messages)


class _Writer(Writer):
    format = "anthropic"
    within = "messages"
    beside = ("system",)
    _has_begun = False

    def write(self, message: ChatMessage) -> Iterator[dict[str, Any]]:
        has_begun, self._has_begun = self._has_begun, True
        match message:
            case SystemMessage():
                if has_begun:
                    self.lose("the place of a system message: its text is in `system`")
                yield {"system": message.text}
            case UserMessage():
                self.calls.interrupted()
                if message.name:
                    self.lose("the name of the user")
                yield from self.turn("user", self.blocks(message.contents))
            case AiMessage():
                texts = self.blocks([TextContent(message.text)] if message.text else [])
                calls = [self.call(call, message) for call in self.requests(message)]
                yield from self.turn("assistant", texts + calls)
            case ToolExecutionResultMessage():
                yield self.result(message)

    def turn(self, role: str, blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield a turn. Anthropic takes no empty one, and no blank text."""
        if blocks:
            yield {"role": role, "content": blocks}
        else:
            self.lose("an empty message")

    def put_beside(self, beside: dict[str, Any], value: dict[str, Any]) -> None:
        """Put the text of every system message into `system`."""
        if "system" in beside:
            value = {"system": _blocks(beside["system"]) + _blocks(value["system"])}
        beside.update(value)

    def join(self, last: dict[str, Any], value: dict[str, Any], joins: bool) -> bool:
        """Join what was said in one turn, and results in a row, which must be in one turn."""
        is_one = joins or (_ends_with_result(last) and _ends_with_result(value))
        is_one &= last.get("role") == value.get("role") and bool(_listed(last) and _listed(value))
        if is_one:
            last["content"] = [*last["content"], *value["content"]]
        return is_one

    def call(self, call: ToolExecutionRequest, message: AiMessage) -> dict[str, Any]:
        types = self.own(message).get("types")
        kind = types.get(call.id) if isinstance(types, Mapping) else None
        return {
            "type": kind if isinstance(kind, str) else "tool_use",
            "id": self.calls.opened(call.id, call.name),
            "name": call.name or "",
            "input": self.arguments(call),
        }

    def arguments(self, call: ToolExecutionRequest) -> dict[str, Any]:
        """Return arguments as the object that they must be.

        Anthropic's documentation of fine-grained tool streaming names the property for others.
        """
        found = json_object(call.arguments or "{}")
        if found is not None:
            return found
        self.lose("that the arguments are no JSON object")
        return {"INVALID_JSON": call.arguments}

    def result(self, message: ToolExecutionResultMessage) -> dict[str, Any]:
        own = self.own(message).get("type")
        kind = own if isinstance(own, str) else "tool_result"
        id, known = self.calls.answered(message.id)
        if message.tool_name not in (None, known):
            self.lose("the name of the tool")
        block: dict[str, Any] = {"type": kind, "tool_use_id": id or ""}
        if kind not in ("tool_result", "mcp_tool_result"):
            return {"role": "assistant", "content": [{**block, "content": self.json_of(message)}]}
        if blocks := self.blocks(message.contents):
            block["content"] = blocks
        if message.is_error is not None:
            block["is_error"] = message.is_error
        role = "user" if kind == "tool_result" else "assistant"
        return {"role": role, "content": [block]}

    def json_of(self, message: ToolExecutionResultMessage) -> Any:
        """Return the result of a server's tool; text if somebody has edited it to no JSON."""
        text = text_of(message)
        try:
            return load_json(text)
        except InvalidMessage:
            return text

    def own(self, message: AiMessage | ToolExecutionResultMessage) -> Mapping[str, Any]:
        own = message.attributes.get(self.format)
        return own if isinstance(own, Mapping) else {}

    def blocks(self, contents: Iterable[Content | None]) -> list[dict[str, Any]]:
        return [block for content in contents if (block := self.block(content)) is not None]

    def block(self, content: Content | None) -> dict[str, Any] | None:
        match content:
            case TextContent() if content.text.strip():
                return {"type": "text", "text": content.text}
            case TextContent():
                if content.text:
                    self.lose("a blank text")
                return None
            case ImageContent() if source := self.source(content.image, "image/png"):
                if content.detail_level not in (DetailLevel.AUTO, DetailLevel.LOW):
                    self.lose(f"the detail level {content.detail_level.value.lower()!r}")
                if content.image.revised_prompt:
                    self.lose("the revised prompt of an image")
                return {"type": "image", "source": source}
            case PdfFileContent(pdf_file=PdfFile() as file) if source := self.source(file):
                return {"type": "document", "source": source}
        self.lose("empty content" if content is None else f"{content.type.lower()} content")
        return None

    def source(self, media: Media, if_untold: str = "") -> dict[str, Any] | None:
        if not media.base64_data:
            return {"type": "url", "url": media.url} if media.url else None
        if media.url:
            self.lose("the url of content that is given inline too")
        kind = media.mime_type or if_untold
        return {"type": "base64", "media_type": kind, "data": media.base64_data}


def _ends_with_result(turn: Mapping[str, Any]) -> bool:
    return any(_type(block).endswith("tool_result") for block in _listed(turn)[-1:])


_Reader.writer = _Writer
FORMAT = Format("anthropic", find, parse, render, claims=claims)
