"""OpenTelemetry's semantic conventions for generative AI: messages made of parts.

Source of the shapes: the JSON schemas of gen_ai.input.messages, gen_ai.output.messages and
gen_ai.system_instructions, of semantic conventions 1.37 and later.

- A conversation is a list of messages, or the attributes of a span, whose values may be JSON text.
  System instructions come first, then input, then output.
- Attributes about the output, such as its usage, are kept with the message of the output. They are
  not written again.
- A message of the role tool becomes a message for each result. An answer in which the provider ran
  a tool becomes several messages: the call, its result, and the parts after it. In both cases,
  these messages are written as one message again.
- Arguments and results may be JSON values or texts. A text such as `{"city": "Paris"}` is written
  as an object. A text with other spacing, such as `{"city":"Paris"}`, is written as a text, so that
  it does not change.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.difference import texts_in
from chatmemory.formats.format import RawTranscript, Response
from chatmemory.formats.json_properties import (
    arguments_text,
    dict_in,
    list_in,
    name_of,
    objects_in,
    part_text,
    text_in,
    type_in,
    unknown,
    unread,
)
from chatmemory.formats.packed import is_list
from chatmemory.formats.parts import PDF, PartWriter, data_of, media_content, runs_of
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    answer_of,
    format_attribute,
    stand_in,
    two_way,
)
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import (
    Content,
    DetailLevel,
    Media,
    PdfFile,
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

_NAME = "otel_genai"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_ABOUT = ("gen_ai.response.", "gen_ai.usage.")

# The types of calls and results, and the property with the arguments or the result.
_CALLS = {"tool_call": "arguments", "server_tool_call": "server_tool_call"}
_RESULTS = {
    "tool_call_response": "response",
    "server_tool_call_response": "server_tool_call_response",
}
_THOUGHTS = ("reasoning", "thinking")
_OLD_RESULT = "result"  # drafts have it in place of `response`
_NEEDED = {
    "text": "content",
    "reasoning": "content",
    "blob": "content",
    "uri": "uri",
    "file": "file_id",
    "tool_call": "name",
    "server_tool_call": "name",
    **_RESULTS,
}


# Reading


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of messages, a whole span, or only the attributes of a span. At least one
    message must have a part in the shape of OpenTelemetry's conventions.
    """
    if is_list(value):
        return RawTranscript(None, value) if any(map(_is_message, value)) else None
    if not isinstance(value, dict):
        return None
    span = dict_in(value, "attributes") or value
    turns, answered = _list(span.get(_INPUT)), _list(span.get(_OUTPUT))
    if not any(map(_is_message, turns + answered)):
        return None
    system = _list(span.get(_SYSTEM))
    about = {name: each for name, each in span.items() if answered and name.startswith(_ABOUT)}
    read = (_INPUT, _OUTPUT, _SYSTEM, "gen_ai.conversation.id", *about)
    turns = [*([{_SYSTEM: system}] if system else []), *turns]
    turns += [Response(answered[0], about), *answered[1:]] if about else answered
    losses = tuple(unread("conversation", span, read))
    return RawTranscript(name_of(span, "gen_ai.conversation.id"), turns, losses)


def _is_message(value: JsonValue) -> bool:
    return any(map(_is_part, list_in(value, "parts"))) and "role" in value


def _is_part(part: JsonValue) -> bool:
    return isinstance(part, dict) and _NEEDED.get(type_in(part)) in part


def _list(value: JsonValue) -> JsonList:
    """Return the list in an attribute of a span. The value may be JSON text."""
    value = decoded(value) if isinstance(value, str) else value
    if isinstance(value, str) and value:
        return [{"type": "text", "content": value}]
    return value if isinstance(value, list) else []


class _Reader(Reader):
    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        is_beside = turn.keys() == {_SYSTEM}
        parts = objects_in(turn, _SYSTEM if is_beside else "parts")
        if not all(isinstance(part.get("type"), str) for part in parts):
            raise InvalidMessage("a part needs the field type, a string")
        match "system" if is_beside else turn.get("role"):
            case "system" | "developer":
                texts = [text for part in parts if (text := _text(part)) is not None]
                if not texts:
                    raise InvalidMessage("no text in its parts")
                yield from self.system("\n".join(texts))
            case "user" | "assistant" | "tool" as role:
                yield from self.pieces(turn, role, parts)
            case role:
                raise unknown("role", role, ("system", "developer", "user", "assistant", "tool"))

    def pieces(self, turn: JsonDict, role: str, parts: list[JsonDict]) -> Iterator[ReadMessage]:
        """Yield the messages of one JSON value: one message for each tool result, and one for the
        parts between two results.
        """
        if not parts and role != "assistant":
            raise InvalidMessage("its list of parts is empty")
        wrapper = turn
        for run in [*runs_of(parts, _is_result)] or [[]]:
            message = self.piece(role, run, text_in(wrapper, "name"))
            yield ReadMessage(
                message, [{**wrapper, "parts": run}], joins=wrapper is not turn or None
            )
            wrapper = {"role": role}

    def piece(self, role: str, run: list[JsonDict], name: str | None) -> ChatMessage:
        if run and _is_result(run[0]):
            return self.result(role, run[0])
        if role == "assistant":
            return self.answer(run)
        contents = [content for part in run if (content := _content(part)) is not None]
        contents = contents or [_shown(run[0])]
        if role == "tool":
            return ToolExecutionResultMessage(*self.calls.answered(None), contents)
        self.calls.interrupted()
        return UserMessage(contents, name)

    def answer(self, run: list[JsonDict]) -> AiMessage:
        thoughts = [part for part in run if part["type"] in _THOUGHTS]
        call_parts = [part for part in run if part["type"] in _CALLS]
        others = [part for part in run if part["type"] not in (*_THOUGHTS, *_CALLS)]
        texts = [text for part in others if (text := _text(part)) is not None]
        calls = [self.request(part) for part in call_parts]
        if others and not texts and not calls and not thoughts:
            texts = [_shown(others[0]).text]
        types = [part["type"] for part in call_parts]
        own = {} if set(types) <= {"tool_call"} else {_NAME: {"types": types}}
        return answer_of(texts, calls, (text_in(part, "content") for part in thoughts), own)

    def request(self, part: JsonDict) -> ToolExecutionRequest:
        arguments = part.get(_CALLS[part["type"]])
        return self.calls.request(text_in(part, "id"), text_in(part, "name"), arguments)

    def result(self, role: str, part: JsonDict) -> ToolExecutionResultMessage:
        property = _RESULTS[part["type"]]
        if property not in part and _OLD_RESULT in part:
            property = _OLD_RESULT
        id, name = self.calls.answered(text_in(part, "id"), text_in(part, "name"))
        kinds = [role, part["type"], property]
        own = {} if kinds == _USUAL else {_NAME: {"types": kinds}}
        text = arguments_text(part.get(property)) or ""
        return ToolExecutionResultMessage(id, name, text, None, own)


_USUAL = ["tool", "tool_call_response", "response"]


def _is_result(part: JsonMap) -> bool:
    return part["type"] in _RESULTS


def _text(part: JsonDict) -> str | None:
    """Return the text of a part of any kind. None for media, and for parts without text."""
    if part.get("type") == "text":
        return part_text(part, "content")
    if part.get("type") in ("blob", "uri", "file"):
        return None
    return "\n".join(texts_in(part)) or None


def _content(part: JsonDict) -> Content | None:
    """Return a part as content. None if a message of LangChain4j cannot have such content."""
    type, mime_type = part.get("type"), text_in(part, "mime_type")
    if type not in ("blob", "uri"):
        text = _text(part)
        return None if text is None else TextContent(text)
    url = text_in(part, "uri") if type == "uri" else None
    data = text_in(part, "content") if type == "blob" else None
    if not url and not data:
        return None
    modality = part.get("modality")
    if modality in ("image", "audio", "video"):
        return media_content(modality, url, data, mime_type, "low")
    return PdfFileContent(PdfFile(url, data, mime_type)) if mime_type == PDF else None


def _shown(part: JsonDict) -> TextContent:
    """Return a text that names a part which no message can express."""
    kind = name_of(part, "modality", "type") or "part"
    return stand_in(kind, name_of(part, "file_id", "uri", "id"))


# Writing


class _Writer(PartWriter):
    format = _NAME
    within = _INPUT
    beside = (_SYSTEM,)
    cannot_say = ("is_error",)
    levels = (DetailLevel.LOW,)

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        parts, more = last.get("parts"), value.get("parts")
        if not joins or not isinstance(parts, list) or not isinstance(more, list):
            return False
        if last.get("role") != value.get("role"):
            return False
        parts += more
        return True

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        yield {"role": "system", "parts": [self.text(message.text)]}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        name = {"name": message.name} if message.name else {}
        yield {"role": "user", "parts": self.parts(message.contents), **name}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        parts: list[JsonDict] = []
        if message.thinking is not None:
            parts.append({"type": "reasoning", "content": message.thinking})
        if message.text is not None:
            parts.append(self.text(message.text))
        calls = self.calls_of(message)
        types = list_in(format_attribute(message, self.format), "types")
        if len(types) != len(calls) or not all(type in [*_CALLS] for type in types):
            types = ["tool_call"] * len(calls)
        for call, type in zip(calls, types, strict=True):
            arguments = {_CALLS[type]: _value(call.arguments or "")}
            parts.append({"type": type, "id": call.id, "name": call.name, **arguments})
        yield {"role": "assistant", "parts": parts}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        if any(not isinstance(content, TextContent) for content in message.contents):
            self.lose("contents of a result that are not text")
        elif len(message.contents) > 1:
            self.lose("how the text is divided into parts")
        types = list_in(format_attribute(message, self.format), "types")
        role, type, property = types if _is_result_shape(types) else _USUAL
        id, name = self.answered(message)
        part = {"type": type, "id": id, **name, property: _value(text_of(message))}
        yield {"role": role, "parts": [part]}

    def text(self, text: str) -> JsonDict:
        return {"type": "text", "content": text}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict:
        about = {"modality": "document" if kind == "file" else kind}
        about |= {"mime_type": media.mime_type} if media.mime_type else {}
        if data := data_of(media):
            return {"type": "blob", **about, "content": data}
        return {"type": "uri", **about, "uri": media.url}


def _is_result_shape(types: JsonList) -> bool:
    """Return whether attributes have the original shape of a tool result. The attributes may come
    from a client.
    """
    match types:
        case ["user" | "assistant" | "tool", str(type), property]:
            return type in _RESULTS and property in (_RESULTS[type], _OLD_RESULT)
    return False


def _value(text: str) -> JsonValue:
    """Return the object or list in a JSON text. Return the text if it is no JSON, or if writing the
    value would give another text.
    """
    value = decoded(text) if text.startswith(("{", "[")) else text
    return value if isinstance(value, str) or arguments_text(value) == text else text


FORMAT = two_way(find, _Reader, _Writer)
