"""Gemini: `{"systemInstruction": …, "contents": [{"role": …, "parts": [part, …]}, …]}`.

Source of the shapes: Google's API reference, generateContent, Content and Part. Names are in
camelCase. A message that was read with names in snake_case, as in Google's libraries, is written in
snake_case again.

- The `response` of a `functionResponse` is an object. This object becomes the JSON text of a tool
  result. Of `{"result": text}` and `{"output": text}`, only the text is read. `{"error": …}`
  becomes a tool result that is an error. Google's library for Python writes `result` and `error`.
- Code that Gemini runs becomes a call of `code_execution`. The output of the code becomes the tool
  result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from mimetypes import guess_type

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import Loss, RawTranscript, Response
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    dicts_in,
    first_in,
    is_list_of,
    json_object,
    object_in,
    objects_in,
    part_text,
    plain_values,
    text_in,
    unknown,
    unread,
)
from chatmemory.formats.parts import TurnReader, TurnWriter, data_of, media_content, mime_type_of
from chatmemory.formats.readers_and_writers import (
    ReadMessage,
    find_turns,
    format_attribute,
    stand_in,
    two_way,
)
from chatmemory.messages.contents import Content, Media, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    with_attributes,
)
from chatmemory.patterns import declared_pattern

_CALLS = ("functionCall", "toolCall", "executableCode")
_RESULTS = ("functionResponse", "toolResponse", "codeExecutionResult")
_SMALL = declared_pattern("_([a-z])")
_LARGE = declared_pattern("([A-Z])")
_KINDS = (*_CALLS, *_RESULTS, "inlineData", "fileData", "text")
_SYSTEM = ("systemInstruction", "system_instruction")
_OF_USER = (None, "user", "function", "tool")
_CODE = "code_execution"

# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of messages, an object with the list under `contents`, or a single response.
    """
    if is_list_of(value, "candidates") and _is_stream(value):
        return _response(_joined(value))
    candidates = value.get("candidates") if isinstance(value, dict) else None
    if candidates and is_list_of(candidates) and _is_candidate(candidates[0]):
        return _response(value)
    names = ("id", "conversation_id")
    return find_turns(value, _are_turns, within=("contents",), names=names, beside=_SYSTEM)


def _are_turns(value: JsonValue) -> bool:
    """Return whether a list begins with a message of Gemini. Other providers' messages have parts
    with a type.
    """
    parts: JsonValue = value[0]["parts"] if is_list_of(value, "parts") else None
    if not is_list_of(parts) or not {"type", "part_kind"}.isdisjoint(parts[0]):
        return False
    return _kind(parts[0]) in _KINDS


def _is_candidate(value: JsonDict) -> bool:
    """Return whether an object is an answer of Gemini. An answer that was stopped may have no
    content.
    """
    is_answer = not {"content", "finishReason", "finish_reason"}.isdisjoint(value)
    return is_answer and isinstance(value.get("content") or {}, dict)


def _is_stream(chunks: Sequence[JsonValue]) -> bool:
    """Return whether responses are the chunks of one answer. Then only the last response says that
    the answer ended.
    """
    ends = [
        bool(first_in(first, "finishReason", "finish_reason"))
        for each in chunks
        for first in dicts_in(each, "candidates")[:1]
    ]
    return all(isinstance(each, dict) for each in chunks) and not any(ends[:-1])


def _joined(chunks: Sequence[JsonDict]) -> JsonDict:
    """Return the answer of a stream as one response. Adjacent texts become one part, and adjacent
    thoughts, too.
    """
    whole: JsonDict = {}
    answer: JsonDict = {}
    parts: list[JsonDict] = []
    others: JsonList = []
    for chunk in chunks:
        whole |= chunk
        candidates = dicts_in(chunk, "candidates")
        others += candidates[1:]
        for part in (part for each in candidates[:1] for part in _parts_of(each)):
            if parts and _goes_on(parts[-1], part):
                parts[-1] = {**parts[-1], **part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
        answer |= candidates[0] if candidates else {}
    answer["content"] = {"role": "model", "parts": parts}
    return {**whole, "candidates": [answer, *others]}


def _parts_of(candidate: JsonDict) -> list[JsonDict]:
    return dicts_in(dict_in(candidate, "content"), "parts")


def _goes_on(last: JsonDict, part: JsonDict) -> bool:
    """Return whether a part of a chunk continues the text or the thought of the last one."""
    both = (last, part)
    are_texts = all(isinstance(each.get("text"), str) for each in both)
    is_signed = not {"thoughtSignature", "thought_signature"}.isdisjoint(last)
    return are_texts and last.get("thought") == part.get("thought") and not is_signed


def _response(value: JsonDict) -> RawTranscript:
    first, *others = value["candidates"]
    history = "automaticFunctionCallingHistory"
    losses = [*unread("conversation", {history: value.get(history)}, ())]
    losses += [Loss("conversation", f"{len(others)} other candidates")] if others else []
    other = ("candidates", history, "sdkHttpResponse", "parsed")
    about = {name: each for name, each in value.items() if name not in other}
    about |= {name: each for name, each in first.items() if name != "content"}
    content = {"role": "model", "parts": [], **(first.get("content") or {})}
    return RawTranscript(None, [Response(content, about)], tuple(losses))


def _kind(part: JsonValue) -> str:
    """Return the name of the property that says the kind of a part."""
    names = [_camel(name) for name in part] if isinstance(part, dict) else []
    return next((kind for kind in _KINDS if kind in names), names[0] if names else "")


def _camel(name: str) -> str:
    return _SMALL.sub(lambda found: found[1].upper(), name)


def _snake(name: str) -> str:
    return _LARGE.sub(lambda found: f"_{found[1].lower()}", name)


def _named(part: JsonMap, spell: JsonValue) -> JsonDict:
    """Return a part with its names in another spelling, also those of the object in it."""
    return {
        spell(name): {spell(n): v for n, v in each.items()} if isinstance(each, dict) else each
        for name, each in part.items()
    }


def _parts(turn: JsonMap) -> JsonList:
    if turn.get("parts") is None:
        raise InvalidMessage("the field parts is missing")
    return objects_in(turn, "parts")


def _is_result(part: JsonValue) -> bool:
    return _kind(part) in _RESULTS


class _Reader(TurnReader):
    within_turn = "parts"
    type_of = staticmethod(_kind)
    is_result = staticmethod(_is_result)

    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        beside = [name for name in _SYSTEM if name in turn]
        if beside and "parts" not in turn:
            texts = [text_in(part, "text") for part in _system_parts(turn[beside[0]])]
            yield from self.system("\n".join(filter(None, texts)))
            return
        role = turn.get("role")
        if role == "model":
            read = self.assistant(_parts(turn))
        elif role in _OF_USER:
            read = self.user(_parts(turn))
        else:
            raise unknown("role", role, ("user", "model", "function"))
        is_snake = any(_snake(kind) in part for part in _parts(turn) for kind in _KINDS[:-1])
        for each in self.joined(turn, read):
            yield self.in_snake_case(each) if is_snake else each

    def in_snake_case(self, read: ReadMessage) -> ReadMessage:
        attributes = getattr(read.message, "attributes", {})
        own = {**attributes.get(self.format, {}), "names": "snake_case"}
        return replace(read, message=with_attributes(read.message, {self.format: own}))

    def is_model_part(self, block: JsonValue) -> bool:
        return _kind(block) in _KINDS

    def contents(self, block: JsonValue) -> list[Content]:
        kind = _kind(block)
        if kind == "text":
            return [TextContent(part_text(block))]
        if kind not in ("inlineData", "fileData"):
            return []
        inner = _inner(block)
        data, url = text_in(inner, "data"), text_in(inner, "fileUri")
        return [media_content("file", url, data, text_in(inner, "mimeType") or "file")]

    def ai_message(self, blocks: JsonList) -> AiMessage:
        calls: list[ToolExecutionRequest] = []
        types: dict[str | None, str] = {}
        texts: dict[bool, str] = {True: "", False: ""}
        for block in blocks:
            kind = _kind(block)
            if kind == "text":
                texts[block.get("thought") is True] += part_text(block)
            elif kind in _CALLS:
                call = self.request(kind, block)
                calls.append(call)
                types |= {} if kind == "functionCall" else {call.id: kind}
        text, thinking = texts[False] or None, texts[True] or None
        if text is None and not calls and not thinking:
            text = next((_mark(part) for part in blocks if _kind(part) in _KINDS[-3:-1]), None)
        return AiMessage(text, calls, thinking, {self.format: {"types": types}} if types else None)

    def request(self, kind: str, block: JsonValue) -> ToolExecutionRequest:
        inner = _inner(block)
        arguments = inner.get("args")
        name = text_in(inner, "toolType" if kind == "toolCall" else "name")
        if kind == "executableCode":
            name, arguments = _CODE, {key: each for key, each in inner.items() if key != "id"}
        return self.calls.request(text_in(inner, "id"), name, arguments)

    def result(self, block: JsonValue) -> ToolExecutionResultMessage:
        kind, inner = _kind(block), _inner(block)
        parts = _parts(inner) if inner.get("parts") else []
        contents = [each for part in parts for each in self.contents(part)]
        label = text_in(inner, "toolType" if kind == "toolResponse" else "name")
        text, is_error = _text_of_response(inner.get("response"))
        if kind == "codeExecutionResult":
            label, text = _CODE, text_in(inner, "output") or ""
            is_error = None if inner.get("outcome") == "OUTCOME_OK" else True
        id, name = self.calls.answered(text_in(inner, "id"), label)
        own = {} if kind == "functionResponse" else {self.format: {"type": kind}}
        return ToolExecutionResultMessage(id, name, [TextContent(text), *contents], is_error, own)


def _inner(part: JsonValue) -> JsonDict:
    """Return the object in a part, with names in camelCase. Raises InvalidMessage."""
    kind = _kind(part)
    return object_in(_named(part, _camel)[kind], f"{kind} must be an object")


def _system_parts(value: JsonValue) -> JsonList:
    """Return the parts of a system instruction. The instruction may be a text, or an object with a
    role.
    """
    if isinstance(value, str):
        return [{"text": value}]
    return _parts(value) if isinstance(value, dict) else _parts({"parts": value})


def _mark(part: JsonValue) -> str:
    """Return a text that stands for an image or a file of the model, because messages of the model
    are text.
    """
    return stand_in("file", text_in(_inner(part), "mimeType")).text


def _text_of_response(response: JsonValue) -> tuple[str, bool | None]:
    """Return the text of a function's response. The second item is True if the response is an
    error, else None.
    """
    if isinstance(response, dict) and _wraps(response):
        (name, inner), *_ = response.items()
        is_error = True if name == "error" else None
        return inner if isinstance(inner, str) else arguments_text(inner) or "", is_error
    return arguments_text(response) or "", None


def _wraps(response: JsonDict) -> bool:
    """Return whether an object only wraps the result or an error, such as `{"result": …}`.

    A result that looks like a wrapper is wrapped once more.
    """
    if len(response) != 1:
        return False
    ((name, inner),) = response.items()
    if isinstance(inner, dict):
        return name == "error" or (name == "result" and _wraps(inner))
    return name == "error" or (
        name in ("result", "output") and isinstance(inner, str) and json_object(inner) is None
    )


# Writing


class _Writer(TurnWriter):
    format = "gemini"
    within = "contents"
    within_turn = "parts"
    beside = _SYSTEM
    cannot_say = ("name",)
    is_result = staticmethod(_is_result)

    def write(self, message: ChatMessage) -> Iterator[JsonDict]:
        is_snake = format_attribute(message, self.format).get("names") == "snake_case"
        for value in super().write(message):
            if is_snake and "parts" in value:
                value = {**value, "parts": [_named(part, _snake) for part in value["parts"]]}
            yield value

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        if self.last:
            self.lose("the place of a system message: its text is in `systemInstruction`")
        yield {"systemInstruction": {"parts": [{"text": message.text}]}}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        yield from self.turn("user", self.parts(message.contents))

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        parts: list[JsonDict] = []
        if message.thinking:
            parts.append({"thought": True, "text": message.thinking})
        parts += [{"text": message.text}] if message.text else []
        parts += [self.call(call, message) for call in self.calls_of(message)]
        yield from self.turn("model", parts)

    def put_beside(self, beside: JsonDict, value: JsonDict) -> None:
        """Write the text of every system message into one instruction."""
        for name in beside.keys() & set(_SYSTEM):
            (more,) = value.values()
            value = {name: {"parts": _system_parts(beside[name]) + _system_parts(more)}}
        beside.update(value)

    def call(self, call: ToolExecutionRequest, message: AiMessage) -> JsonDict:
        kind, args = self.kind_of_call(message, call.id, "functionCall"), self.arguments(call)
        if kind == "executableCode":
            return {kind: args}
        name = "toolType" if kind == "toolCall" else "name"
        return {kind: {name: call.name, "args": args, "id": call.id}}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        kind = self.kind_of_result(message, "functionResponse")
        id, known = self.calls.answered(message.id, message.tool_name)
        texts = [each.text for each in message.contents if isinstance(each, TextContent)]
        if len(texts) > 1:
            self.lose("how the text is divided into parts")
        text = "\n".join(texts)
        if kind == "codeExecutionResult":
            outcome = "OUTCOME_FAILED" if message.is_error else "OUTCOME_OK"
            yield {"role": "model", "parts": [{kind: {"outcome": outcome, "output": text}}]}
            return
        name = "toolType" if kind == "toolResponse" else "name"
        inner: JsonDict = {name: message.tool_name or known or ""}
        inner |= {"response": _response_of(text, message.is_error)}
        inner |= {"id": id} if id else {}
        media = [each for each in message.contents if not isinstance(each, TextContent)]
        inner |= {"parts": parts} if (parts := self.parts(media)) else {}
        yield {"role": "model" if kind == "toolResponse" else "user", "parts": [{kind: inner}]}

    def text(self, text: str) -> JsonDict | None:
        return {"text": text} if text else None

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        mime_type = media.mime_type or guess_type(media.url or "")[0] or mime_type_of(kind, media)
        if data := data_of(media):
            return {"inlineData": {"mimeType": mime_type, "data": data}}
        return {"fileData": {"mimeType": mime_type, "fileUri": media.url}}


def _response_of(text: str, is_error: bool | None) -> JsonDict:
    found = json_object(text)
    if is_error:
        return {"error": text if found is None else found}
    if found is None:
        return {"result": text}
    return {"result": found} if _wraps(found) else found


# Google's library


def plain(value: LibraryValue) -> JsonValue:
    """Return objects of Google's library as JSON values of Google's HTTP API. A stream of objects
    is accepted, too.
    """
    return plain_values([*value] if isinstance(value, Iterator) else value, _dumped)


def _dumped(value: LibraryValue) -> JsonValue:
    return _with_base64(value.model_dump(mode="json", by_alias=True, exclude_none=True))


def _with_base64(value: JsonValue) -> JsonValue:
    """Return values in which base64 data have the standard alphabet. The library uses the alphabet
    for URLs.
    """
    if isinstance(value, list):
        return [_with_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _with_base64(each) for name, each in value.items()}
    if "mimeType" in found and isinstance(found.get("data"), str):
        found["data"] = found["data"].replace("-", "+").replace("_", "/")
    return found


FORMAT = replace(two_way(find, _Reader, _Writer, plain=plain), reads_streams=True)
