"""OpenAI's Responses API: a list of items, with `instructions` outside the list.

Source of the shapes: OpenAI's API reference, responses: input items and output items.

Messages from items:

- Reasoning, a text and tool calls in a row become one AiMessage. After a text, further reasoning or
  another text begins another AiMessage.
- While a tool call has no output yet, further reasoning, texts and tool calls join the AiMessage of
  this call.
- An item that is both call and result, such as `mcp_call`, becomes a call and a result. Both are
  written as one item again.
- If an item for a call or a result has another type than `function_call` or `function_call_output`,
  the attributes of its message keep the type: `{"openai_responses": {"types": [type, …]}}`.

Items that no message can express are kept in the attributes of a message:

- Settings such as `additional_tools` and `mcp_list_tools` are kept with the message before them.
- `compaction`, `item_reference` and items of unknown types are kept with the answer before or after
  them. If there is no such answer, the item becomes a message with its text, or with a placeholder
  such as `[compaction cmp_1]`.

Messages from other formats are written as items that OpenAI accepts. Their reasoning is a loss. A
system message becomes an item with the role system. A system message that was read from
`instructions` is written there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.difference import texts_in
from chatmemory.formats.format import Loss, RawTranscript, Response
from chatmemory.formats.json_properties import (
    arguments_text,
    dicts_in,
    is_list_of,
    list_in,
    name_of,
    object_in,
    part_text,
    text_in,
    type_in,
    unknown,
    unread,
)
from chatmemory.formats.openai_chat import (
    audio_content,
    file_content,
    image_content,
    plain,
    url_and_detail,
    without,
)
from chatmemory.formats.packed import is_list
from chatmemory.formats.parts import PartWriter, data_of, url_of
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    format_attribute,
    stand_in,
    two_way,
)
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import (
    Content,
    Image,
    ImageContent,
    Media,
    PdfFileContent,
    TextContent,
)
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)

_NAME = "openai_responses"


@dataclass(frozen=True)
class _Kind:
    """How the items of a type express a tool call or a tool result.

    - `properties`: the properties with the arguments or the result. If there are several, they are
      read as one JSON object.
    - `tool`: the name of the tool, for items that do not name it.
    - `id`: the property with the id of the call.
    - `is_json`: whether the property's value is JSON, and not text.
    """

    properties: tuple[str, ...]
    tool: str | None = None
    id: str = "call_id"
    is_json: bool = False

    def read(self, item: JsonMap) -> str | None:
        found = {name: item[name] for name in self.properties if item.get(name) is not None}
        if len(self.properties) == 1:
            return arguments_text(found.get(self.properties[0]))
        return arguments_text(found) if found else None

    def written(self, text: str) -> JsonDict:
        value = decoded(text) if self.is_json else text
        if len(self.properties) > 1 and isinstance(value, dict):
            found = {name: value[name] for name in self.properties if name in value}
            return found or {self.properties[0]: value}
        return {self.properties[0]: value}


_CALLS = {
    "function_call": _Kind(("arguments",)),
    "custom_tool_call": _Kind(("input",)),
    "mcp_approval_request": _Kind(("arguments",), id="id"),
    "tool_search_call": _Kind(("arguments",), "tool_search", is_json=True),
    "computer_call": _Kind(("action", "actions"), "computer", is_json=True),
    "local_shell_call": _Kind(("action",), "local_shell", is_json=True),
    "shell_call": _Kind(("action",), "shell", is_json=True),
    "apply_patch_call": _Kind(("operation",), "apply_patch", is_json=True),
    "program": _Kind(("code",), "program"),
    "mcp_call": _Kind(("arguments",), id="id"),
    "code_interpreter_call": _Kind(("code",), "code_interpreter", "id"),
    "web_search_call": _Kind(("action",), "web_search", "id", is_json=True),
    "file_search_call": _Kind(("queries",), "file_search", "id", is_json=True),
    "image_generation_call": _Kind(("revised_prompt",), "image_generation", "id"),
}
_RESULTS = {
    "function_call_output": _Kind(("output",)),
    "custom_tool_call_output": _Kind(("output",)),
    "mcp_approval_response": _Kind(("approve", "reason"), id="approval_request_id", is_json=True),
    "tool_search_output": _Kind(("tools",), "tool_search", is_json=True),
    "computer_call_output": _Kind(("output",), "computer"),
    "local_shell_call_output": _Kind(("output",), "local_shell", "id"),
    "shell_call_output": _Kind(("output",), "shell", is_json=True),
    "apply_patch_call_output": _Kind(("output",), "apply_patch"),
    "program_output": _Kind(("result",), "program"),
    # Items that are both call and result
    "mcp_call": _Kind(("output",), id="id"),
    "code_interpreter_call": _Kind(("outputs",), "code_interpreter", "id", is_json=True),
    "web_search_call": _Kind(("status",), "web_search", "id"),
    "file_search_call": _Kind(("results",), "file_search", "id", is_json=True),
    "image_generation_call": _Kind(("result",), "image_generation", "id"),
}
_BOTH = [type for type in _CALLS if type in _RESULTS]
_MCP_ERROR = _Kind(("error",), id="id", is_json=True)

_SETTINGS = ("additional_tools", "mcp_list_tools", "configuration_update", "compaction_trigger")
_OTHERS = ("reasoning", "compaction", "item_reference", *_SETTINGS)
_PARTS = ("input_text", "output_text", "input_image", "input_file")
_CONTINUED = ("previous_response_id", "conversation")
_NO_ID = "__fake_id__"  # of all items that the Agents SDK makes for other providers
_ABOUT = ("id", "model", "created_at", "status", "incomplete_details", "error", "usage")


# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of items, a request with a text or a list under `input`, or a response with
    the list under `output`. A list without a request or response around it must have an item that
    only this format has. Any other list of messages is read as chat completions. The `instructions`
    of a response are left out, because they repeat those of the request.
    """
    if is_list(value):
        return RawTranscript(None, _newest(value)) if any(map(_is_item, value)) else None
    if not isinstance(value, dict):
        return None
    input, output = value.get("input"), value.get("output")
    is_response = value.get("object") == "response"
    if isinstance(output, list) and (is_response or (input is None and find(output))):
        return _response(value)
    if isinstance(input, str) and "model" in value and "output" not in value:
        return _request(value, [{"role": "user", "content": input}])
    if isinstance(input, list) and (is_list_of(input, "role") or find(input)):
        return _request(value, input)
    return None


def _newest(items: Sequence[JsonValue]) -> Sequence[JsonValue]:
    """Return the items without earlier versions of an item. Some agents store an item again when it
    is complete.

    An earlier version has the same id, and comes just before the newer version.
    """
    older = {
        n
        for n, (item, after) in enumerate(pairwise(items))
        if _is_item(item) and _is_item(after) and _repeats(after, item)
    }
    return [item for n, item in enumerate(items) if n not in older] if older else items


def _repeats(newer: JsonDict, older: JsonDict) -> bool:
    """Return whether `older` is an earlier version of `newer`: each text of `newer` begins with the
    text of `older`.
    """
    if not older.get("id") or older["id"] == _NO_ID:
        return False
    if any(newer.get(name) != older.get(name) for name in ("id", "type", "role", "call_id")):
        return False
    texts = zip_longest(_said(older), _said(newer), fillvalue="")
    return all(after.startswith(before) for before, after in texts)


def _said(item: JsonDict) -> list[str]:
    parts = [each for each in list_in(item, "content") if isinstance(each, dict)]
    said = [item.get("arguments"), *(each.get("text") for each in parts)]
    return [each for each in said if isinstance(each, str)]


def _is_item(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    if type_in(value) in (*_CALLS, *_RESULTS, *_OTHERS):
        return not value.keys().isdisjoint(("id", "call_id", "approval_request_id", "tools"))
    return "role" in value and any(type_in(part) in _PARTS for part in list_in(value, "content"))


def _response(value: JsonDict) -> RawTranscript:
    first, *others = value["output"] or [None]
    if first is None:
        return RawTranscript(None, [], (Loss("conversation", "an answer without items"),))
    about = {name: value[name] for name in _ABOUT if value.get(name) is not None}
    return RawTranscript(None, [Response(first, about), *others])


def _request(value: JsonDict, items: JsonList) -> RawTranscript:
    """Return the items of a request. If the request continues a stored conversation or response,
    the first message keeps its id.
    """
    instructions = value.get("instructions")
    is_text = isinstance(instructions, str)
    read = ("input", "id", *_CONTINUED, *(["instructions"] * is_text))
    losses = unread("conversation", value, read)
    turns = [{"instructions": instructions}, *items] if instructions and is_text else items
    if (about := {name: value[name] for name in _CONTINUED if value.get(name)}) and turns:
        turns = [Response(turns[0], about), *turns[1:]]
    return RawTranscript(name_of(value, "id"), turns, tuple(losses))


class _Reader(Reader):
    turn = "an item"
    _answer: int | None = None  # the index of the AiMessage that the next item may join

    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        item, type = _without_parsed(turn), _type_of(turn)
        if type == "instructions":
            yield from self.system(text_in(item, "instructions"))
        elif type == "message":
            yield from self.message(item)
        elif type == "reasoning":
            kept = {name: item.get(name) for name in ("summary", "content")}
            thoughts = dict.fromkeys(texts_in(kept))  # some hosts repeat one in the other
            yield _part(item, AiMessage(None, (), "\n".join(thoughts) or None))
        elif type in _CALLS:
            yield from self.call(item, type)
        elif type in _RESULTS:
            id = text_in(item, _RESULTS[type].id)
            yield ReadMessage(self.result(item, type, id), [item])
        elif type in _SETTINGS and self.messages:
            self.keep(item)
        else:
            yield _part(item, AiMessage("\n".join(texts_in(item)) or None))

    def message(self, item: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        contents = self.contents(item, "content")
        texts = [part.text for part in contents if isinstance(part, TextContent)]
        match item.get("role"):
            case "system" | "developer" if texts:
                yield from self.system("\n".join(texts))
            case "user":
                self.calls.interrupted()
                yield UserMessage(contents)
            case "assistant" if texts:
                yield _part(item, AiMessage("\n".join(texts)))
            case "system" | "developer" | "assistant":
                raise InvalidMessage("no text in its content")
            case role:
                known = ("system", "developer", "user", "assistant")
                raise unknown("role", role, known)

    def call(self, item: JsonDict, type: str) -> Iterator[ReadMessage]:
        kind = _CALLS[type]
        name = kind.tool or text_in(item, "name")
        id = text_in(item, kind.id, "id")
        request = self.calls.request(id, name, kind.read(item))
        message = AiMessage(None, (request,), None, _of_types([type], "function_call"))
        if type not in _BOTH:
            yield _part(item, message)
            return
        result = {*_RESULTS[type].properties, *(("error",) if type == "mcp_call" else ())}
        yield _part({name: item[name] for name in item if name not in result}, message)
        known = {name: item[name] for name in item if name in ("type", "id", *result)}
        yield ReadMessage(self.result(item, type, request.id), [known])

    def result(self, item: JsonDict, type: str, id: str | None) -> ToolExecutionResultMessage:
        kind = _RESULTS[type]
        id, name = self.calls.answered(id, kind.tool or text_in(item, "name"))
        contents: str | Sequence[Content] | None
        is_error = None
        if type in ("function_call_output", "custom_tool_call_output"):
            contents = self.contents(item, "output")
        elif type == "computer_call_output":
            contents = self.contents({"output": [item.get("output")]}, "output")
        elif type == "image_generation_call" and item.get("result"):
            kind_of_image = f"image/{text_in(item, 'output_format') or 'png'}"
            contents = [ImageContent(Image(None, text_in(item, "result"), kind_of_image))]
        elif type == "mcp_call" and item.get("error") is not None:
            contents, is_error = _MCP_ERROR.read(item), True
        else:
            contents = kind.read(item)
        types = _of_types([type], "function_call_output")
        return ToolExecutionResultMessage(id, name, contents or "", is_error, types)

    def contents(self, item: JsonDict, name: str) -> list[Content]:
        """Return a property of an item as contents: a text, or a list of parts. Raises
        InvalidMessage if nothing can be read.
        """
        value = item.get(name)
        if isinstance(value, str) or (value is None and name == "output" and name in item):
            return [TextContent(value or "")]
        if value is None:
            raise InvalidMessage(f"the field {name} is missing")
        if not isinstance(value, list):
            raise InvalidMessage(f"{name} must be a string or a list of parts")
        found = [read for part in value if (read := _content(part)) is not None]
        if not found:
            raise InvalidMessage(f"no part of its {name} can be read")
        return found

    def keep(self, item: JsonDict) -> None:
        """Keep an item that becomes no message in the message before it."""
        if self._answer is None:
            self.messages[-1] = replace(self.messages[-1], values=[*self.messages[-1].values, item])
        else:
            last = self.messages[self._answer]
            self.messages[self._answer] = _joined(last, _part(item, AiMessage(None)))

    def add(self, read: ReadMessage) -> None:
        """Add a message. A part of an answer may be joined to the AiMessage before it."""
        if isinstance(read.message, AiMessage):
            if self._answer is not None and self._continues(read.message):
                self.messages[self._answer] = _joined(self.messages[self._answer], read)
                return
            self._answer = len(self.messages)
        elif _types_of(read.message, _BOTH) == []:
            self._answer = None
        super().add(read)

    def _continues(self, message: AiMessage) -> bool:
        assert self._answer is not None
        answer = self.messages[self._answer].message
        assert isinstance(answer, AiMessage)
        before = set(answer.tool_execution_requests) - set(message.tool_execution_requests)
        if any(call and self.calls.is_open(call.id) for call in before):
            return True  # else the call and its output would be separated
        has_results = self._answer < len(self.messages) - 1
        return not has_results and (answer.text is None or message.has_tool_execution_requests)

    def finished(self) -> Iterable[ReadMessage]:
        return map(_shown, self.messages)


def _without_parsed(item: JsonDict) -> JsonDict:
    """Return an item without the properties that `parse` and `stream` of the library add."""
    match item:
        case {"type": "function_call", "parsed_arguments": _}:
            return dict(without(item, "parsed_arguments"))
        case {"role": "assistant", "content": [*parts]}:
            return {**item, "content": [without(part, "parsed") for part in parts]}
    return item


def _type_of(item: JsonMap) -> str:
    type = item.get("type")
    if isinstance(type, str):
        return type
    if item.keys() == {"instructions"}:
        return "instructions"
    if "role" in item:
        return "message"
    if "id" in item:
        return "item_reference"
    raise InvalidMessage("an item needs the field type or the field role")


def _part(item: JsonDict, message: AiMessage) -> ReadMessage:
    """Return a part of an answer as a message. Its JSON value is an object with a list of items, so
    that parts can be joined.
    """
    return ReadMessage(message, [{"items": [item]}])


def _joined(first: ReadMessage, more: ReadMessage) -> ReadMessage:
    """Return two parts of an answer as one part."""
    one, other = first.message, more.message
    assert isinstance(one, AiMessage)
    assert isinstance(other, AiMessage)
    calls = one.tool_execution_requests + other.tool_execution_requests
    types = [
        type
        for each in (one, other)
        for type in _types_of(each, _CALLS) or ["function_call"] * len(each.tool_execution_requests)
    ]
    texts = [text for text in (one.text, other.text) if text is not None]
    thoughts = [text for text in (one.thinking, other.thinking) if text is not None]
    message = AiMessage(
        "\n".join(filter(None, texts)) if texts else None,
        calls,
        "\n".join(thoughts) if thoughts else None,
        _of_types(types, "function_call"),
    )
    items = [item for each in (first, more) for item in each.values[0]["items"]]
    return ReadMessage(message, [{"items": items}], response=first.response or more.response)


def _shown(read: ReadMessage) -> ReadMessage:
    """Return an answer that shows something: if the answer would be empty, its text names the first
    item.
    """
    match read.message:
        case AiMessage(text=None, tool_execution_requests=(), thinking=None):
            item = read.values[0]["items"][0]
            text = stand_in(_type_of(item), name_of(item, "id")).text
            return replace(read, message=AiMessage(text))
    return read


def _content(part: JsonValue) -> Content | None:
    """Return a part as content. None if a message of LangChain4j cannot have such content."""
    part = object_in(part, "a part must be an object")
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text":
            return TextContent(part_text(part))
        case "refusal":
            return TextContent(text_in(part, "refusal") or "")
        case "input_image" | "computer_screenshot":
            url = text_in(part, "image_url")
            if not url:
                return stand_in("image", text_in(part, "file_id"))
            return image_content({"url": url, "detail": part.get("detail")})
        case "input_file":
            return file_content(part)
        case "input_audio":
            return audio_content(
                object_in(part.get("input_audio"), "input_audio must be an object")
            )
    return None


def _of_types(types: list[str], usual: str) -> JsonDict:
    """Return attributes with the types of items. Returns {} if all items are of the
    `usual` type.
    """
    return {} if set(types) <= {usual} else {_NAME: {"types": types}}


def _types_of(message: ChatMessage, known: Iterable[str]) -> list[str]:
    """Return the types of items in a message's attributes. Returns [] if one of them is not in
    `known`.
    """
    types = list_in(format_attribute(message, _NAME), "types")
    return types if all(type in [*known] for type in types) else []


# Writing


class _Writer(PartWriter):
    format = _NAME
    within = "input"
    beside = ("instructions",)
    cannot_say = ("name", "thinking")

    def _values(self, messages: Iterable[ChatMessage], beside: JsonDict) -> Iterator[JsonDict]:
        for value in super()._values(messages, beside):
            yield from dicts_in(value, "items") if value.keys() == {"items"} else [value]

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        """Add a tool result to the item of its call, if that item can be both call and result.
        Return whether it was added.
        """
        if value.get("type") not in _BOTH:
            return False
        for item in dicts_in(last, "items"):
            if item.get("type") == value["type"] and item.get("id") == value.get("id"):
                item.update(value)
                return True
        self.lose("a tool result without its call")
        return True

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"role": "system", "content": message.text}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        yield {"role": "user", "content": self.text_or_parts(message.contents)}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        yield {"items": [*self.items(message)]}

    def items(self, message: AiMessage) -> Iterator[JsonDict]:
        calls, before = self.calls_of(message), self.last
        if isinstance(before, AiMessage) and (calls or before.tool_execution_requests):
            self.lose("the end of the previous message: both messages are read as one")
        types = _types_of(message, _CALLS)
        if message.text is not None:
            yield {"role": "assistant", "content": message.text}
        elif not calls:
            self.lose("a message without text and calls")
        for place, call in enumerate(calls):
            yield self.call(call, types[place] if len(types) == len(calls) else "function_call")

    def call(self, call: ToolExecutionRequest, type: str) -> JsonDict:
        kind = _CALLS[type]
        name = {} if kind.tool else {"name": call.name}
        return {"type": type, kind.id: call.id, **name, **kind.written(call.arguments or "")}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        type, *_ = _types_of(message, _RESULTS) or ["function_call_output"]
        id, name = self.answered(message)
        if message.is_error and type != "mcp_call":
            self.lose("that the result is an error")
        yield {"type": type, _RESULTS[type].id: id, **self.output(message, type, name)}

    def output(
        self, message: ToolExecutionResultMessage, type: str, name: dict[str, str]
    ) -> JsonDict:
        """Return the properties of an item of this type that express a tool result."""
        match type, message.contents:
            case "mcp_call", _ if message.is_error:
                return _MCP_ERROR.written(text_of(message))
            case "function_call_output" | "custom_tool_call_output", contents:
                return {"output": self.text_or_parts(contents), **name}
            case "computer_call_output", (ImageContent(image=image),):
                return {"output": {"type": "computer_screenshot", "image_url": url_of(image)}}
            case "image_generation_call", (ImageContent(image=image),):
                return {"result": image.base64_data}
        return _RESULTS[type].written(text_of(message))

    def text(self, text: str) -> JsonDict:
        return {"type": "input_text", "text": text}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict | None:
        match content:
            case ImageContent():
                image = url_and_detail(content)
                about = {"image_url": image["url"], "detail": image["detail"]}
                return {"type": "input_image", **about}
            case PdfFileContent() if data_of(media):
                return {"type": "input_file", "filename": "file.pdf", "file_data": url_of(media)}
            case PdfFileContent():
                return {"type": "input_file", "file_url": media.url}
        return None


FORMAT = two_way(find, _Reader, _Writer, plain=plain)
