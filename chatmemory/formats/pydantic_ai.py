"""Pydantic AI's messages, the JSON of its ModelMessagesTypeAdapter.

    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": …}, …], …}
    {"kind": "response", "parts": [{"part_kind": "text", "content": …}, …], …}

- A request becomes several messages: its instructions, system prompts, tool results, and the user's
  parts.
- A response in which the provider ran tools becomes several messages: the calls, each result, and
  the parts after it.

All messages that were read from one request or response are written as one request or response
again. Source of the shapes: pydantic_ai.messages 2.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    is_list_of,
    object_in,
    objects_in,
    text_in,
    unknown,
)
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
    answer_of,
    find_turns,
    nothing_in,
    stand_in,
    two_way,
)
from chatmemory.messages.contents import Content, ImageContent, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

_URLS = {"image-url": "image", "audio-url": "audio", "video-url": "video", "document-url": "file"}
_KIND_OF_URL = {kind: name for name, kind in _URLS.items()}
_BUILT_IN = ("builtin-tool-call", "builtin-tool-return")
_RETRIES = ("retry-prompt", "retry-feedback")
_SAME = True  # marks instructions that repeat the previous request's

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value: a list of requests and responses, or an object with the
    list under `messages`. None if the value is in another format.
    """
    return find_turns(value, _are_messages, names=("conversation_id", "id"))


def _are_messages(value: JsonValue) -> bool:
    return (
        is_list_of(value, "kind", "parts")
        and value[0]["kind"] in ("request", "response")
        and isinstance(value[0]["parts"], list)
        and all(isinstance(part, dict) and "part_kind" in part for part in value[0]["parts"])
    )


class _Reader(Reader):
    _instructions: str | None = None  # of the last request that had any

    def read(self, turn: JsonDict) -> Iterator[ReadMessage]:
        kind = turn.get("kind")
        if kind not in ("request", "response"):
            raise unknown("kind", kind, ("request", "response"))
        parts = objects_in(turn, "parts")
        about = {name: value for name, value in turn.items() if name != "parts"}
        messages = [*self.instructions(about)] if kind == "request" else []
        messages += self.request(parts) if kind == "request" else self.response(parts)
        if not messages:
            kinds = (part.get("part_kind") for part in parts)
            raise nothing_in(f"part of the {kind}", "parts of kind ", kinds)
        for i, (message, value) in enumerate(messages):
            value = {"kind": kind, **(about if i == len(messages) - 1 else {}), **value}
            yield ReadMessage(message, [value], joins=i > 0 or None)

    def instructions(self, about: JsonDict) -> Iterator[tuple[ChatMessage, JsonDict]]:
        """Yield the instructions of a request. Yield nothing if they repeat those of the previous
        request.
        """
        text = text_in(about, "instructions")
        if text and text == self._instructions:
            about["instructions"] = _SAME
        elif text:
            for message in self.system(text):
                self._instructions = about.pop("instructions")
                yield message, {"instructions": text, "parts": []}

    def request(self, parts: Sequence[JsonDict]) -> Iterator[tuple[ChatMessage, JsonDict]]:
        found: list[tuple[ChatMessage, JsonList]] = []
        waiting: JsonList = []  # parts without content, beside one that has some
        for part in parts:
            message = self.message_of(part)
            if message is None:
                (found[-1][1] if found else waiting).append(part)
            else:
                found.append((message, [*waiting, part]))
                waiting = []
        yield from ((message, {"parts": own}) for message, own in found)

    def message_of(self, part: JsonDict) -> ChatMessage | None:
        """Return the message of a request's part; None if the part becomes no message."""
        kind, content = part.get("part_kind"), part.get("content")
        if kind == "system-prompt":
            return next(self.system(text_in(part, "content")), None)
        if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
            return self.result(part)
        if kind in _RETRIES and isinstance(content, list):
            return UserMessage(arguments_text(content) or "")
        if kind == "user-prompt":
            self.calls.interrupted()
        if kind in ("user-prompt", "compaction", *_RETRIES):
            contents = _contents(content)
            return UserMessage(contents) if contents else None
        return None

    def result(self, part: JsonDict) -> ToolExecutionResultMessage:
        id, name = text_in(part, "tool_call_id"), text_in(part, "tool_name")
        content = part.get("content")
        contents = _contents(content) if _are_contents(content) else None
        is_retry = part.get("part_kind") == "retry-prompt"
        is_error = is_retry or part.get("outcome", "success") != "success"
        answered = self.calls.answered(id, name)
        text = "null" if content is None else arguments_text(content) or ""
        return ToolExecutionResultMessage(*answered, contents or text, is_error or None)

    def response(self, parts: Sequence[JsonDict]) -> Iterator[tuple[ChatMessage, JsonDict]]:
        """Yield the messages of a response: those of the model, and the results of tools that the
        provider ran.
        """
        if parts and not any(part.get("part_kind") in _OF_MODEL for part in parts):
            return
        for run in [*runs_of(parts, _is_result)] or [[]]:
            is_result = any(map(_is_result, run))
            yield self.result(run[0]) if is_result else self.ai_message(run), {"parts": run}

    def ai_message(self, parts: Sequence[JsonDict]) -> AiMessage:
        texts = [text for part in parts if (text := _text_in(part)) is not None]
        thinking = [part for part in parts if part.get("part_kind") == "thinking"]
        calls = []
        for part in parts:
            if part.get("part_kind") in ("tool-call", "builtin-tool-call"):
                id, name = text_in(part, "tool_call_id"), text_in(part, "tool_name")
                calls.append(self.calls.request(id, name, part.get("args")))
        return answer_of(texts, calls, (text_in(part, "content") for part in thinking))


_OF_MODEL = ("text", "thinking", "tool-call", *_BUILT_IN, "file", "compaction", "speech")


def _is_result(part: JsonMap) -> bool:
    return part.get("part_kind") == "builtin-tool-return"


def _text_in(part: JsonMap) -> str | None:
    match part.get("part_kind"):
        case "text" | "compaction":
            return text_in(part, "content")
        case "speech":
            return text_in(part, "transcript")
        case "file":
            content = object_in(part.get("content"), "a file needs the field content, an object")
            return stand_in(str(content.get("media_type") or "file"), None).text
    return None


def _are_contents(content: JsonValue) -> bool:
    """Return whether a tool result's content is only texts and media."""
    return isinstance(content, list) and all(
        isinstance(each, str) or (isinstance(each, dict) and each.get("kind") in _KINDS)
        for each in content
    )


_KINDS = (*_URLS, "binary", "uploaded-file", "text-content")


def _contents(content: JsonValue) -> list[Content]:
    if isinstance(content, str):
        return [TextContent(content)]
    if not isinstance(content, list):
        raise InvalidMessage("content must be a string or a list")
    return [read for each in content if (read := _content(each)) is not None]


def _content(item: JsonValue) -> Content | None:
    """Return an item of a content. None if the item has no content, such as a cache point."""
    if isinstance(item, str):
        return TextContent(item)
    item = object_in(item, "an item of the content must be a string or an object")
    kind, mime_type = text_in(item, "kind"), text_in(item, "media_type")
    detail = dict_in(item, "vendor_metadata").get("detail")
    if kind in _URLS:
        return media_content(_URLS[kind], text_in(item, "url"), None, mime_type, detail)
    match kind:
        case "binary":
            return media_content("file", None, text_in(item, "data"), mime_type, detail)
        case "text-content" | "structured-content":
            return TextContent(text_in(item, "content") or arguments_text(item.get("value")) or "")
        case "uploaded-file":
            return stand_in("file", text_in(item, "file_id"))
    return None


# Writing


class _Writer(PartWriter):
    format = "pydantic_ai"
    cannot_say = ("name",)

    def _values(self, messages: Iterable[ChatMessage], beside: JsonDict) -> Iterator[JsonDict]:
        """Yield requests and responses. Each request has the current instructions."""
        last = None
        for value in super()._values(messages, beside):
            if value.get("instructions") is _SAME:
                value["instructions"] = last
            last = value.get("instructions") or last
            yield value

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        part = {"part_kind": "system-prompt", "content": message.text}
        yield {"kind": "request", "parts": [part]}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        part = {"part_kind": "user-prompt", "content": self.text_or_parts(message.contents)}
        yield {"kind": "request", "parts": [part]}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        parts: list[JsonDict] = []
        if message.thinking:
            parts.append({"part_kind": "thinking", "content": message.thinking})
        if message.text is not None:
            parts.append({"part_kind": "text", "content": message.text})
        for call in self.calls_of(message):
            about = {"tool_name": call.name, "args": call.arguments, "tool_call_id": call.id}
            parts.append({"part_kind": "tool-call", **about})
        yield {"kind": "response", "parts": parts}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        id, name = self.calls.answered(message.id, message.tool_name)
        about = {"tool_name": name or "", "tool_call_id": id or ""}
        about |= {"outcome": "failed"} if message.is_error else {}
        content = self.text_or_parts(message.contents)
        part = {"part_kind": "tool-return", "content": content, **about}
        yield {"kind": "request", "parts": [part]}

    def text(self, text: str) -> str:
        return text

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        detail = detail_of(content) if isinstance(content, ImageContent) else "auto"
        about = {} if detail == "auto" else {"vendor_metadata": {"detail": detail}}
        if data := data_of(media):
            mime_type = mime_type_of(kind, media)
            return {"kind": "binary", "data": data, "media_type": mime_type, **about}
        type = {"media_type": media.mime_type} if media.mime_type else {}
        return {"kind": _KIND_OF_URL[kind], "url": media.url, **type, **about}

    def is_value(self, value: JsonValue) -> bool:
        return isinstance(value, dict) and "kind" in value and isinstance(value.get("parts"), list)

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        """Add a message to the previous value if both were read from one request or response.
        Return whether it was added.
        """
        if not joins or last["kind"] != value["kind"]:
            return False
        last |= {**value, "parts": [*last["parts"], *value["parts"]]}
        return True


def plain(value: LibraryValue) -> JsonValue:
    """Return Pydantic AI's message objects as JSON values, as ModelMessagesTypeAdapter
    writes them.
    """
    if isinstance(value, Mapping):
        return {name: plain(value) for name, value in value.items()}
    messages = list(value) if isinstance(value, list | tuple) else [value]
    if not any(hasattr(message, "parts") for message in messages):
        return value
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # the library of the objects

    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


FORMAT = two_way(find, _Reader, _Writer, plain=plain)
