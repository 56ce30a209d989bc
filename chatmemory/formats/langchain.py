"""LangChain messages. LangChain spells a message in three ways:

    {"type": "human", "data": {"content": …}}                      messages_to_dict
    {"type": "human", "content": …}                                model_dump
    {"lc": 1, "type": "constructor", "id": […], "kwargs": {…}}     dumpd

A message is written in the spelling in which it was read. Messages from other formats are written
as messages_to_dict does, so that `messages_from_dict` reads them. Source of the shapes:
langchain_core.messages 1.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    first_in,
    json_object,
    name_of,
    object_in,
    part_text,
    plain_values,
    text_in,
    type_in,
    unknown,
    unread,
)
from chatmemory.formats.packed import is_list
from chatmemory.formats.parts import (
    PartWriter,
    data_of,
    detail_of,
    media_content,
    mime_type_of,
    runs_of,
)
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    find_turns,
    nothing_in,
    stand_in,
    two_way,
)
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import Content, ImageContent, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

_CLASSES = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool"}
_CLASSES |= {"function": "Function", "chat": "Chat"}
# The types by their names in messages, chunks and dumpd
_TYPES = {
    name: type
    for type, stem in _CLASSES.items()
    for name in (type, f"{stem}Message", f"{stem}MessageChunk")
}
_ROLES = {"assistant": "ai", "ai": "ai", "system": "system", "developer": "system"}

# Blocks of the content that repeat tool_calls
_CALLS = ("tool_call", "tool_use", "function_call", "custom_tool_call")
_SAID_AGAIN = (*_CALLS, "invalid_tool_call", "tool_call_chunk", "input_json_delta")
_ARGUMENTS = ("args", "input", "arguments", "action", "queries", "code")
_RESULTS = ("output", "outputs", "results", "result")
_KINDS_OF_MEDIA = dict.fromkeys(("image", "image_url", "input_image"), "image")
_KINDS_OF_MEDIA |= {"audio": "audio", "input_audio": "audio", "video": "video"}
_KINDS_OF_MEDIA |= dict.fromkeys(("file", "input_file", "document", "media"), "file")

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of messages, or an object with the list, such as the state of an agent.
    """
    names = ("thread_id", "id")
    if values := dict_in(value, "values"):
        found = find_turns(values, _are_messages, names=names)
        about = tuple(unread("thread", value, ("values", *names)))
        return found and replace(found, name=name_of(value, *names), losses=found.losses + about)
    return find_turns(value, _are_messages, names=names)


def _are_messages(value: JsonValue) -> bool:
    return is_list(value) and bool(value) and _is_message(value[0])


def _is_message(turn: JsonValue) -> bool:
    if not isinstance(turn, dict):
        return False
    type, how, data = _taken_apart(turn)
    needs = {"tool": "tool_call_id", "function": "name"}.get(type or "", "content")
    has_role = "role" in data or "role" in how
    return type is not None and {"content", needs} <= data.keys() and has_role == (type == "chat")


def _taken_apart(turn: JsonMap) -> tuple[str | None, JsonDict, JsonDict]:
    """Return the type of a message, the details of its spelling, and its fields without
    the type.
    """
    name, how, data = turn.get("type"), JsonDict(), turn
    if isinstance(turn.get("kwargs"), dict) and isinstance(turn.get("id"), list) and turn["id"]:
        name, data = turn["id"][-1], turn["kwargs"]
        how["around"] = {key: each for key, each in turn.items() if key != "kwargs"}
    elif isinstance(turn.get("data"), dict):
        data = turn["data"]
    else:
        how["is_flat"] = True
    type = _TYPES.get(name) if isinstance(name, str) else None
    if type != name:
        how["type"] = name
    if "is_flat" not in how and data.get("type", "") != name:
        how["inner"] = data.get("type")
    if type == "chat" and "role" in data:
        how["role"] = data["role"]
    outside = ("type", "role") if type == "chat" else ("type",)
    return type, how, {key: each for key, each in data.items() if key not in outside}


def _spelt(value: JsonMap) -> JsonDict:
    """Return a message in its original spelling. `value` has its type, its fields and its
    spelling.
    """
    how = value.get("as", {})
    name = how.get("type", value["type"])
    data = {**value["data"], **({"role": how["role"]} if "role" in how else {})}
    if how.get("is_flat"):
        return {**data, "type": name}
    inner = how.get("inner", name)
    data |= {} if inner is None else {"type": inner}
    return {**how["around"], "kwargs": data} if "around" in how else {"type": name, "data": data}


class _Reader(Reader):
    def read(self, turn: JsonDict) -> Iterator[ReadMessage]:
        type, how, data = _taken_apart(turn)
        if turn.get("type") == "remove" or how.get("type") == "RemoveMessage":
            raise InvalidMessage("a remove message has no text: it removes another message")
        if type is None:
            name = how.get("type")
            raise unknown("type", name, _CLASSES)
        kind = {"function": "tool"}.get(type, type)
        if type == "chat":
            kind = _ROLES.get(str(how.get("role")), "human")
        if kind != type:
            how = {"type": type, **how}
        value = {"type": kind, "data": data, **({"as": how} if how else {})}
        if kind == "ai":
            yield from self.assistant(value)
        else:
            yield from (ReadMessage(message, [value]) for message in self.other(kind, data))

    def other(self, kind: str, data: JsonDict) -> Iterator[ChatMessage]:
        contents = _contents(data)
        texts = (each.text for each in contents if isinstance(each, TextContent))
        if kind == "system":
            yield from self.system("".join(texts))
        elif kind == "human":
            self.calls.interrupted()
            yield UserMessage(contents, text_in(data, "name"))
        else:
            id, name = text_in(data, "tool_call_id"), text_in(data, "name")
            is_error = True if data.get("status") == "error" else None
            yield ToolExecutionResultMessage(*self.calls.answered(id, name), contents, is_error)

    def assistant(self, value: JsonDict) -> Iterator[ReadMessage]:
        """Yield the messages of an answer: more than one if the provider ran tools. Then tool
        results and the texts between them are messages, too.

        The last message keeps the other fields of the answer.
        """
        data = value["data"]
        calls = list(self.requests(data))
        content = data.get("content")
        if not isinstance(content, list):
            yield ReadMessage(self.ai_message(data, [text_in(data, "content")], calls), [value])
            return
        runs = _runs(content)
        if not runs or (calls and _is_result(runs[-1][0])):
            runs.append([])
        last = max(i for i, run in enumerate(runs) if not any(map(_is_result, run)))
        for i, run in enumerate(runs):
            fields = {**data, "content": run} if i == last else {"content": run}
            part = {**value, "data": fields}
            if any(map(_is_result, run)):
                yield ReadMessage(self.result(run[0]), [part], joins=True)
                continue
            own = [self.server_request(block) for block in run if _server_call(block)]
            own += calls if i == last else []
            message = self.ai_message(fields, run, own)
            yield ReadMessage(message, [part], joins=i > 0 or None)

    def ai_message(
        self, data: JsonMap, content: Sequence[JsonValue], calls: list[ToolExecutionRequest]
    ) -> AiMessage:
        more = object_in(data.get("additional_kwargs") or {}, "additional_kwargs must be an object")
        thoughts = [thought for block in content if (thought := _thought(block))]
        thoughts += [thought] if (thought := text_in(more, "reasoning_content")) else []
        audio = object_in(more.get("audio") or {}, "audio must be an object")
        texts = [text for block in content if (text := _text_in(block))]
        text = "".join(texts) or text_in(more, "refusal") or text_in(audio, "transcript")
        if not text and not calls and not thoughts:
            text = _stand_ins(content)
        return AiMessage(text, calls, "\n".join(thoughts) or None)

    def requests(self, data: JsonMap) -> Iterator[ToolExecutionRequest]:
        """Yield the tool calls of an answer. The arguments are as the model wrote them, if
        LangChain has kept that text.

        Calls are in tool_calls and invalid_tool_calls. In older messages they are in
        additional_kwargs or in the content.
        """
        more = object_in(data.get("additional_kwargs") or {}, "additional_kwargs must be an object")
        raw = dicts_in(more, "tool_calls") + dicts_in(data, "tool_call_chunks")
        raw += [block for block in dicts_in(data, "content") if block.get("type") in _CALLS]
        plain = [_plain_call(call) for call in raw]
        calls = dicts_in(data, "tool_calls") + dicts_in(data, "invalid_tool_calls")
        if not calls:
            old = more.get("function_call")
            calls = plain + ([_plain_call(old)] if isinstance(old, dict) else [])
        for call in calls:
            id, name, arguments = text_in(call, "id"), text_in(call, "name"), call.get("args")
            texts = [each["args"] for each in plain if (each["id"], each["name"]) == (id, name)]
            if not data.get("tool_call_chunks"):  # else the text is incomplete
                texts = [text for text in texts if _is_json_of(arguments, text)]
            text = next((text for text in texts if isinstance(text, str)), None)
            text = arguments_text(arguments) if text is None else text
            yield self.calls.request(id, name, text)

    def server_request(self, block: JsonMap) -> ToolExecutionRequest:
        """Return a tool call for a tool that the provider itself runs."""
        name = text_in(block, "name") or str(block["type"]).removesuffix("_call")
        return self.calls.request(text_in(block, "id"), name, first_in(block, *_ARGUMENTS))

    def result(self, block: JsonMap) -> ToolExecutionResultMessage:
        """Return the result of a tool that the provider itself ran."""
        id = text_in(block, "tool_call_id", "tool_use_id", "call_id", "id")
        id, name = self.calls.answered(id)
        keys = (*_RESULTS, "content")
        result = next((block[key] for key in keys if block.get(key) is not None), "")
        failed = block.get("status") == "error" or block.get("is_error") is True
        return ToolExecutionResultMessage(id, name, arguments_text(result) or "", failed or None)


def _plain_call(call: JsonMap) -> JsonDict:
    """Return the id, name and arguments of a tool call that is in the shape of a provider."""
    function = call["function"] if isinstance(call.get("function"), dict) else call
    id, arguments = call.get("call_id") or call.get("id"), ("args", "arguments", "input")
    return {"id": id, "name": function.get("name"), "args": first_in(function, *arguments)}


def _is_json_of(value: JsonValue, text: JsonValue) -> bool:
    """Return whether a text is the JSON of these arguments."""
    if not isinstance(text, str) or isinstance(value, str):
        return isinstance(text, str) and text == value
    return bool(decoded(text) == value)


def _runs(content: Sequence[JsonValue]) -> list[JsonList]:
    """Return the blocks of an answer in groups: each tool result alone, and the blocks between two
    results together.

    A result may be inside the block of its call. Then it is taken out of the block.
    """
    blocks = []
    for block in content:
        results = _results_in(block)
        if results:
            blocks.append({key: each for key, each in block.items() if key not in results})
            block = {key: block[key] for key in ("type", "id", *results) if key in block}
        blocks.append(block)
    return [*runs_of(blocks, _is_result)]


def _is_result(block: JsonValue) -> bool:
    type = type_in(block)
    is_result = type == "server_tool_result" or type.endswith(("_tool_result", "_call_output"))
    return is_result or bool(_results_in(block))


def _results_in(block: JsonValue) -> list[str]:
    """Return the names of the properties of a tool call's block that have its result."""
    found = block if _server_call(block) else {}
    return [key for key in _RESULTS if found.get(key) is not None]


def _server_call(block: JsonValue) -> bool:
    type = type_in(block)
    is_call = type in ("server_tool_use", "mcp_tool_use") or type.endswith("_call")
    return is_call and type not in _SAID_AGAIN


def _text_in(block: JsonValue) -> str | None:
    """Return the text of a text block, or None."""
    if isinstance(block, str):
        return block
    match type_in(block):
        case "text" | "output_text" | "input_text" | "text-plain":
            return part_text(block)
        case "refusal":
            return text_in(block, "refusal")
    return None


def _thought(block: JsonValue) -> str | None:
    """Return the text of a block in which the model reasons."""
    match type_in(block):
        case "thinking":
            return text_in(block, "thinking")
        case "reasoning":
            texts = [text_in(each, "text") or "" for each in dicts_in(block, "summary")]
            return text_in(block, "reasoning") or "\n".join(texts)
        case "reasoning_content":
            return text_in(object_in(block.get("reasoning_content"), "no reasoning"), "text")
    return None


def _stand_ins(content: Sequence[JsonValue]) -> str:
    """Return placeholder texts for images and files that a model made. Raises InvalidMessage."""
    blocks = [block for block in content if block]
    kinds = [kind for block in blocks if (kind := _KINDS_OF_MEDIA.get(type_in(block)))]
    if blocks and not kinds:
        raise _nothing_in(blocks)
    return " ".join(stand_in(kind, None).text for kind in kinds)


def _nothing_in(content: Sequence[JsonValue]) -> InvalidMessage:
    return nothing_in("block of its content", "blocks of type ", map(type_in, content))


def _contents(data: JsonMap) -> list[Content]:
    """Return the content of a message that is not from the model. Raises InvalidMessage if there is
    no content.
    """
    content = data.get("content")
    if isinstance(content, str):
        return [TextContent(content)]
    if not isinstance(content, list) or not content:
        raise InvalidMessage("content must be a string or a list of blocks")
    contents = [read for block in content if (read := _block(block)) is not None]
    if not contents:
        raise _nothing_in(content)
    return contents


def _block(block: JsonValue) -> Content | None:
    text = _text_in(block)
    if text is not None:
        return TextContent(text)
    kind = _KINDS_OF_MEDIA.get(type_in(block))
    if kind is None:
        return None
    inner = next((block[key] for key in _INNER if isinstance(block.get(key), dict)), block)
    url = text_in(inner, "url", "file_uri")
    if isinstance(block.get("image_url"), str):
        url = block["image_url"]
    mime_type = text_in(inner, "mime_type", "media_type")
    if kind == "audio" and mime_type is None and "format" in inner:
        mime_type = f"audio/{text_in(inner, 'format')}"
    data = text_in(inner, "base64", "data", "file_data")
    if inner.get("type") == "text" or mime_type == "text/plain":
        return TextContent(data or url or "")
    if not data and not url:
        return stand_in(kind, text_in(inner, "file_id", "filename", "id"))
    if data and data.startswith("data:"):
        url, data = data, None
    return media_content(kind, url, data or None, mime_type, inner.get("detail"))


_INNER = ("source", "image_url", "input_audio", "file")


# Writing


class _Writer(PartWriter):
    format = "langchain"

    def _values(self, messages: Iterable[ChatMessage], beside: JsonDict) -> Iterator[JsonDict]:
        yield from map(_spelt, super()._values(messages, beside))

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"type": "system", "data": {"content": message.text}}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        name = {"name": message.name} if message.name else {}
        yield {"type": "human", "data": {"content": self.text_or_parts(message.contents), **name}}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        data: JsonDict = {"content": message.text or ""}
        if message.thinking:
            data["additional_kwargs"] = {"reasoning_content": message.thinking}
        for call in self.calls_of(message):
            arguments = _arguments(call.arguments)
            type = "invalid_tool_call" if arguments is None else "tool_call"
            value = call.arguments if arguments is None else arguments
            written = {"name": call.name, "args": value, "id": call.id, "type": type}
            written |= {"error": None} if arguments is None else {}
            data.setdefault(f"{type}s", []).append(written)
        yield {"type": "ai", "data": data}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        id, name = self.calls.answered(message.id, message.tool_name)
        data = {"content": self.text_or_parts(message.contents), "tool_call_id": id or ""}
        data |= {"name": name} if name else {}
        data |= {"status": "error"} if message.is_error else {}
        yield {"type": "tool", "data": data}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        data, mime_type = data_of(media), mime_type_of(kind, media)
        if isinstance(content, ImageContent):
            url = f"data:{mime_type};base64,{data}" if data else media.url
            detail = detail_of(content)
            about = {} if detail == "auto" else {"detail": detail}
            return {"type": "image_url", "image_url": {"url": url, **about}}
        if data:
            return {"type": kind, "base64": data, "mime_type": mime_type}
        return {"type": kind, "url": media.url} | (
            {"mime_type": media.mime_type} if media.mime_type else {}
        )

    def is_value(self, value: JsonValue) -> bool:
        match value:
            case {"type": str(), "data": dict(), "as": dict(how)}:
                return isinstance(how.get("around", {}), dict)
            case {"type": str(), "data": dict()}:
                return "as" not in value
        return False

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        """Add a message to the previous message if both were read from one answer. Return whether
        it was added.
        """
        if not joins or (last["type"], value["type"]) != ("ai", "ai"):
            return False
        data, more = last["data"], dict(value["data"])
        before, blocks = _blocks(data.get("content")), _blocks(more.pop("content", []))
        if before and blocks and _is_rest_of(before[-1], blocks[0]):
            before[-1] = {**before[-1], **blocks.pop(0)}
        data |= {**more, "content": before + blocks}
        last |= {name: each for name, each in value.items() if name != "data"}
        return True


def _is_rest_of(call: JsonValue, block: JsonValue) -> bool:
    """Return whether a block is a tool result that was read from the block of this call."""
    is_same = type_in(block) == type_in(call)
    return is_same and _server_call(call) and bool(block.get("id") == call.get("id"))


def _blocks(content: JsonValue) -> JsonList:
    return list(content) if isinstance(content, list) else [content] if content else []


def _arguments(text: str | None) -> JsonDict | None:
    """Return the arguments of a tool call as an object, or None if the text is not a JSON
    object.
    """
    return json_object(text) if text and text.strip() else {}


def as_dict(message: JsonMap) -> JsonDict:
    """Return a message in the spelling of messages_to_dict. The given message may be in any of
    LangChain's spellings.
    """
    type, how, data = _taken_apart(message)
    return {"type": type, "data": data | ({"role": how["role"]} if "role" in how else {})}


def plain(value: LibraryValue) -> JsonValue:
    """Return LangChain's message objects in the spelling of messages_to_dict. The objects may be in
    lists and dictionaries.
    """
    return plain_values(value, _dumped)


def _dumped(value: LibraryValue) -> JsonValue:
    data = value.model_dump(mode="json", fallback=_without_json)
    return {"type": data["type"], "data": data} if "type" in data else data


def _without_json(value: JsonValue) -> str:
    """Return a placeholder for a part of an artifact that JSON cannot express."""
    return stand_in(type(value).__name__, None).text


FORMAT = two_way(find, _Reader, _Writer, plain=plain)
