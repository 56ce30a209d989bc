"""The AI SDK's UIMessages, `{"id": …, "role": …, "parts": […]}`, as `useChat` keeps them.

One UIMessage of the assistant is a whole answer, for which the model may have been called several
times. Each model call is read as an AI message and its tool results. Writing joins all of these
messages into one UIMessage again.

A part of a UIMessage can have both a tool call and its result. Messages of AI SDK 4 are read, too,
but are written in the shape of AI SDK 5 and 6.

Source of the shapes: the types UIMessage and UIMessagePart of AI SDK 5 and 6.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    is_list_of,
    name_of,
    object_in,
    objects_in,
    part_text,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import PDF, PartWriter, media_content, url_of
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    find_turns,
    stand_in,
    two_way,
)
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import Content, DetailLevel, Media, TextContent
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

_ROLES = ("system", "user", "assistant")
_OF_FOUR = ("content", "toolInvocations", "experimental_attachments")
_START = {"type": "step-start"}
_DENIED = "Tool execution denied."  # the model's text if the user gave no reason
# The properties of a call's part that belong to its result, and the states that have a result.
_OF_RESULT = ("output", "errorText", "preliminary", "resultProviderMetadata")
_ANSWERED = ("output-available", "output-error", "output-denied")
# The property of each type of part that distinguishes it from parts of other formats.
_NEEDED = {
    "text": "text",
    "reasoning": "text",
    "file": "mediaType",
    "source-url": "sourceId",
    "source-document": "sourceId",
    "step-start": "type",
    "dynamic-tool": "toolCallId",
    "tool-invocation": "toolInvocation",
}


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value: a list of UIMessages, or an object with the list under
    `messages`. None if the value is in another format.
    """
    return find_turns(value, _are_ui_messages)


def _are_ui_messages(value: JsonValue) -> bool:
    """Return whether the first part in a list of messages is the AI SDK's. Other formats have
    parts, too.
    """
    if not is_list_of(value, "role"):
        return False
    parts = (turn.get("parts") for turn in value if isinstance(turn, dict))
    first = next((each[0] for each in parts if isinstance(each, list) and each), None)
    return isinstance(first, dict) and _is_ui_part(first)


def _is_ui_part(part: JsonMap) -> bool:
    type = type_in(part)
    if type.startswith("data-"):
        return "data" in part
    return _NEEDED.get(type, "toolCallId" if type.startswith("tool-") else "") in part


def _parts_of(turn: JsonDict) -> list[JsonDict]:
    """Return the parts of a message in the new shape. Raises InvalidMessage."""
    parts = turn.get("parts")
    if "content" in turn and not parts:
        calls = _list(turn, "toolInvocations")
        parts = [{"type": "tool-invocation", "toolInvocation": call} for call in calls]
        parts += [{"type": "text", "text": turn["content"]}] if turn["content"] else []
    files = [_file_of_today(file) for file in _list(turn, "experimental_attachments")]
    return [*map(_of_today, objects_in({"parts": parts}, "parts")), *files]


def _list(turn: JsonMap, name: str) -> JsonList:
    found = turn.get(name) or []
    if not isinstance(found, list):
        raise InvalidMessage(f"{name} must be a list")
    return found


def _of_today(part: JsonDict) -> JsonDict:
    match part:
        case {"type": "reasoning", "reasoning": text}:
            return {"type": "reasoning", "text": text}
        case {"type": "file", "mimeType": mime, "data": data}:
            return {"type": "file", "mediaType": mime, "url": f"data:{mime};base64,{data}"}
        case {"type": "tool-invocation", "toolInvocation": dict(call)}:
            state = "output-available" if call.get("state") == "result" else "input-available"
            names = {"toolName": "toolName", "toolCallId": "toolCallId", "args": "input"}
            names |= {"result": "output"} if state == "output-available" else {}
            renamed = {now: call[before] for before, now in names.items() if before in call}
            return {"type": "dynamic-tool", "state": state, **renamed}
    return part


def _file_of_today(file: JsonValue) -> JsonDict:
    file = object_in(file, "an attachment must be an object")
    names = {"name": "filename", "contentType": "mediaType", "url": "url"}
    return {"type": "file"} | {now: file[old] for old, now in names.items() if old in file}


# In the attributes, and until the end of writing, all tools' parts have the same type:
# {"type": "tool", "toolName": …}, so that a difference finds its part for any tool.


def _tool_part(part: JsonDict) -> JsonDict:
    """Return the part of a tool in the form in which the reader takes it. Other parts are returned
    unchanged.
    """
    type = type_in(part)
    if type == "dynamic-tool":
        part = {**part, "type": "tool", "dynamic": True}
    elif type.startswith("tool-"):
        part = {**part, "type": "tool", "toolName": type.removeprefix("tool-")}
    else:
        return part
    if part.get("input") is None and "rawInput" in part:
        part["input"] = part.pop("rawInput")
        part["raw"] = True
    return part


def _ui_part(part: JsonDict) -> JsonDict:
    """Return the part of a tool in the form that the AI SDK has. Other parts are returned
    unchanged.
    """
    if part.get("type") != "tool":
        return part
    part = dict(part)
    if part.pop("raw", False):
        part["rawInput"] = part.pop("input", None)
    if part.pop("dynamic", False):
        return {**part, "type": "dynamic-tool"}
    name = part.pop("toolName", "")
    return {**part, "type": f"tool-{name}"}


# Reading


class _Reader(Reader):
    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        parts = _parts_of(turn)
        members = {name: value for name, value in turn.items() if name not in _OF_FOUR}
        turn = {**members, "parts": parts}
        match turn.get("role"):
            case "system":
                for message in self.system(_texts(parts, "text")):
                    yield ReadMessage(message, [turn])
            case "user":
                self.calls.interrupted()
                if not parts:
                    raise InvalidMessage("its list of parts is empty")
                read = [content for part in parts if (content := _content(part)) is not None]
                yield ReadMessage(UserMessage(read or [_stand_in(part) for part in parts]), [turn])
            case "assistant":
                yield from self.assistant(turn, [_tool_part(part) for part in parts])
            case role:
                raise unknown("role", role, _ROLES)

    def assistant(self, turn: JsonDict, parts: list[JsonDict]) -> Iterator[ReadMessage]:
        head, joins = turn, None
        for step in _steps(parts):
            calls = [_without_result(part) for part in step]
            yield ReadMessage(self.spoken(step), [{**head, "parts": calls}], joins)
            head, joins = {"role": "assistant"}, True
            for part in filter(_is_answered, step):
                yield ReadMessage(self.result(part), [{**head, "parts": [_result_of(part)]}])
                joins = None  # parts after a result continue the answer anyway

    def spoken(self, step: Sequence[JsonDict]) -> AiMessage:
        calls = [self.request(part) for part in step if part.get("type") == "tool"]
        text, thinking = _texts(step, "text"), _texts(step, "reasoning")
        other_parts = [part for part in step if part.get("type") != "step-start"]
        if text is None and thinking is None and not calls and other_parts:
            text = "\n".join(_stand_in(part).text for part in other_parts)
        return AiMessage(text, calls, thinking)

    def request(self, part: JsonDict) -> ToolExecutionRequest:
        id, name = text_in(part, "toolCallId"), text_in(part, "toolName")
        if not id:
            raise InvalidMessage("the part of a tool needs the field toolCallId")
        return self.calls.request(id, name, part.get("input"))

    def result(self, part: JsonDict) -> ToolExecutionResultMessage:
        id, name = self.calls.answered(part["toolCallId"])
        if part["state"] == "output-available":
            output = part.get("output", "")
            return ToolExecutionResultMessage(id, name, _spelt(output))
        why = text_in(part, "errorText")
        if part["state"] == "output-denied":
            why = text_in(dict_in(part, "approval"), "reason") or _DENIED
        return ToolExecutionResultMessage(id, name, why or "", True)


def _steps(parts: Sequence[JsonDict]) -> Iterator[list[JsonDict]]:
    """Yield the parts of each AI message in a UIMessage.

    An AI message begins at a `step-start`, and at the first text after a tool result.
    """
    step: list[JsonDict] = []
    for part in parts:
        type = part.get("type")
        is_start = type == "step-start" and any(each.get("type") != type for each in step)
        is_said = type in ("text", "reasoning", "file")
        if is_start or (is_said and any(map(_is_answered, step))):
            yield step
            step = []
        step.append(part)
    yield step


def _is_answered(part: JsonDict) -> bool:
    return part.get("type") == "tool" and part.get("state") in _ANSWERED


def _without_result(part: JsonDict) -> JsonDict:
    if not _is_answered(part):
        return part
    call = {name: value for name, value in part.items() if name not in _of_result(part)}
    return {**call, "state": "input-available"}


def _result_of(part: JsonDict) -> JsonDict:
    known = ("type", "toolName", "toolCallId", "state", *_of_result(part))
    return {name: value for name, value in part.items() if name in known}


def _of_result(part: JsonDict) -> tuple[str, ...]:
    return (*_OF_RESULT, "approval") if part["state"] == "output-denied" else _OF_RESULT


def _texts(parts: Iterable[JsonDict], type: str) -> str | None:
    """Return the joined texts of the parts of this type; None if there are no such parts."""
    found = [part_text(part) for part in parts if part.get("type") == type]
    return "\n".join(found) if found else None


def _stand_in(part: JsonMap) -> TextContent:
    return stand_in(str(part.get("type")), name_of(part, "filename"))


def _content(part: JsonDict) -> Content | None:
    """Return a part as content. None if a message of LangChain4j cannot have such content."""
    if part.get("type") == "text":
        return TextContent(part_text(part))
    if part.get("type") != "file":
        return None
    mime, url = text_in(part, "mediaType") or "", text_in(part, "url")
    kind = "file" if mime == PDF else mime.partition("/")[0]
    if kind not in ("file", "image", "audio", "video") or not url:
        return _stand_in(part)
    return media_content(kind, url, None, None if mime.endswith("/*") else mime)


# Writing


class _Writer(PartWriter):
    format = "vercel_ui"
    cannot_say = ("name",)
    levels = (DetailLevel.AUTO,)
    _is_same_answer = False  # whether the current message continues the answer before it

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        super().__init__(taken)
        self._called: set[str | None] = set()  # in the answer so far

    def _values(self, messages: Iterable[ChatMessage], beside: JsonDict) -> Iterator[JsonDict]:
        """Yield UIMessages. Each has its original id, or an id made from its position."""
        for place, value in enumerate(super()._values(messages, beside)):
            value = {**value, "parts": [_ui_part(part) for part in dicts_in(value, "parts")]}
            mark = sha256(f"{place} {json.dumps(value, sort_keys=True)}".encode())
            yield {"id": f"msg-{mark.hexdigest()[:16]}", **value}

    def write(self, message: ChatMessage) -> Iterator[JsonDict]:
        self._is_same_answer = isinstance(self.last, ToolExecutionResultMessage)
        if not self._is_same_answer and not isinstance(message, ToolExecutionResultMessage):
            self._called.clear()
        yield from super().write(message)

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"role": "system", "parts": [self.text(message.text)]}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        yield {"role": "user", "parts": self.parts(message.contents) or [self.text("")]}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        yield {"role": "assistant", "parts": [*self.spoken(message)] or [_START]}

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        if not last.get("role") == value.get("role") == "assistant" or "id" in value:
            return False
        parts, more = dicts_in(last, "parts"), dicts_in(value, "parts")
        if isinstance(self.last, ToolExecutionResultMessage):
            return self._join_result(parts, more)
        if joins or self._is_same_answer:
            last["parts"] = [*parts, *more]
            return True
        return False

    def _join_result(self, parts: list[JsonDict], result: list[JsonDict]) -> bool:
        """Add a tool result to the part of its call. Return whether such a part was found."""
        for part in parts:
            is_open = part.get("type") == "tool" and not _is_answered(part)
            if is_open and result and part.get("toolCallId") == result[0].get("toolCallId"):
                part |= result[0]
                return True
        return False

    def spoken(self, message: AiMessage) -> Iterator[JsonDict]:
        if self._is_same_answer:
            yield _START
        if message.thinking is not None:
            yield {"type": "reasoning", "text": message.thinking}
        if message.text is not None:
            yield self.text(message.text)
        for call in self.calls_of(message):
            self._called.add(call.id)
            part = {"type": "tool", "toolName": call.name, "toolCallId": call.id}
            yield {**part, "state": "input-available", "input": _input(call.arguments)}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        self.lose_contents(message.contents)
        id, name = self.calls.answered(message.id, message.tool_name)
        is_known = id in self._called
        if not is_known:
            self.lose("the absence of the result's tool call")
        part: JsonDict = {"type": "tool", "toolName": name or "", "toolCallId": id or ""}
        if not is_known:
            part["input"] = {}
        if message.is_error:
            part |= {"state": "output-error", "errorText": text_of(message)}
        else:
            part |= {"state": "output-available", "output": _value(text_of(message))}
        yield {"role": "assistant", "parts": [part]}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        mime = media.mime_type or (PDF if kind == "file" else f"{kind}/*")
        return {"type": "file", "mediaType": mime, "url": url_of(media)}


def _spelt(value: JsonValue) -> str:
    """Return the output of a tool as text. A text is returned unchanged. Raises InvalidMessage."""
    return "null" if value is None else arguments_text(value) or ""


def _value(text: str) -> JsonValue:
    """Return the JSON value whose text, as this format reads it, is `text`."""
    value = _input(text)
    return value if _spelt(value) == text else text


def _input(arguments: str | None) -> JsonValue:
    """Return arguments as a JSON object or list. Other arguments stay text."""
    value = decoded(arguments or "{}")
    return arguments if isinstance(value, str) else value


FORMAT = two_way(find, _Reader, _Writer)
