"""OpenTelemetry's semantic conventions for generative AI: messages of parts.

Source of the shapes: the JSON schemas of gen_ai.input.messages, gen_ai.output.messages and
gen_ai.system_instructions, of semantic conventions 1.37 and later.

A conversation is a list of messages, or the attributes of a span, whose values may be JSON text:
the system instructions, the input and the output, which comes last. What a span says of the output,
such as its usage, is kept with the message and not written again: later it is input itself.

A message of the role tool is as many results as it has parts, and one message again on the way out.
A server's tool call in an answer is a call, its result, and another AiMessage for what comes behind
it; they are one message on the way out, too. Arguments and results are values or text: JSON objects
and lists that are spelled as we spell them are written as values, and all else as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.codec import load_json
from chatmemory.core.contents import (
    Content,
    DetailLevel,
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
    name_of,
    object_in,
    stand_in,
    text_in,
    unread,
)
from chatmemory.formats.difference import texts_in
from chatmemory.formats.format import Format, RawTranscript, Rendering, Transcript
from chatmemory.formats.media import PDF, data_of, media_content, media_of

_NAME = "otel_genai"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_ABOUT = ("gen_ai.response.", "gen_ai.usage.")

# The parts that are calls and results, and the property that has the arguments or the result.
_CALLS = {"tool_call": "arguments", "server_tool_call": "server_tool_call"}
_RESULTS = {
    "tool_call_response": "response",
    "server_tool_call_response": "server_tool_call_response",
}
_THOUGHTS = ("reasoning", "thinking")
_OLD_RESULT = "result"  # of drafts, in place of `response`
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


def find(value: Any) -> RawTranscript | None:
    """Return a list of messages, or the attributes of a span, which may stand in the span.

    A message has a part as these conventions have it: other formats have messages of parts, too.
    """
    if isinstance(value, list):
        return RawTranscript(None, value) if any(map(_is_message, value)) else None
    if not isinstance(value, dict):
        return None
    span = value["attributes"] if isinstance(value.get("attributes"), dict) else value
    asked, answered = _list(span.get(_INPUT)), _list(span.get(_OUTPUT))
    if not any(map(_is_message, asked + answered)):
        return None
    told = _list(span.get(_SYSTEM))
    about = {name: each for name, each in span.items() if answered and name.startswith(_ABOUT)}
    read = (_INPUT, _OUTPUT, _SYSTEM, "gen_ai.conversation.id", *about)
    turns = [*([{_SYSTEM: told}] if told else []), *asked]
    turns += [Response(answered[0], about), *answered[1:]] if about else answered
    losses = tuple(unread("conversation", span, read))
    return RawTranscript(name_of(span, "gen_ai.conversation.id"), turns, losses)


def _is_message(value: Any) -> bool:
    parts = value.get("parts") if isinstance(value, dict) and "role" in value else None
    return isinstance(parts, list) and any(map(_is_part, parts))


def _is_part(part: Any) -> bool:
    type = part.get("type") if isinstance(part, dict) else None
    return isinstance(type, str) and _NEEDED.get(type) in part


def _list(value: Any) -> list[Any]:
    """Return the list that an attribute of a span holds, which may be JSON text."""
    value = _decoded(value) if isinstance(value, str) else value
    if isinstance(value, str) and value:
        return [{"type": "text", "content": value}]
    return value if isinstance(value, list) else []


def _decoded(text: str) -> Any:
    try:
        return load_json(text)
    except InvalidMessage:
        return text


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    given = (turn.turn if isinstance(turn, Response) else turn for turn in turns)
    lists = (turn.get("parts") for turn in given if isinstance(turn, dict))
    parts = (part for each in lists if isinstance(each, list) for part in each)
    ids = [part.get("id") for part in parts if isinstance(part, dict)]
    taken = frozenset(id for id in ids if isinstance(id, str)) | ids_of_calls(after)
    return _Reader(taken).read_all(turns, after)


class _Reader(Reader):
    format = _NAME

    def read(self, turn: Any) -> Iterator[ChatMessage | Said]:
        turn = object_in(turn, "a message must be a JSON object")
        is_beside = turn.keys() == {_SYSTEM}
        parts = turn.get(_SYSTEM if is_beside else "parts")
        if not isinstance(parts, list):
            raise InvalidMessage("parts must be a list")
        for part in parts:
            if not isinstance(object_in(part, "a part must be an object").get("type"), str):
                raise InvalidMessage("a part needs a type")
        match "system" if is_beside else turn.get("role"):
            case "system" | "developer":
                texts = [text for part in parts if (text := _text(part)) is not None]
                if not texts:
                    raise InvalidMessage("no text in its parts")
                yield from self.system("\n".join(texts))
            case "user" | "assistant" | "tool" as role:
                yield from self.pieces(turn, role, parts)
            case role:
                raise InvalidMessage(f"unknown role {role!r}")

    def pieces(
        self, turn: dict[str, Any], role: str, parts: list[dict[str, Any]]
    ) -> Iterator[Said]:
        """Yield the messages of a turn: each result is one, and what stands between results."""
        if not parts and role != "assistant":
            raise InvalidMessage("its parts are empty")
        said = turn
        for run in _runs(parts):
            message = self.piece(role, run, text_in(said, "name"))
            yield Said(message, [{**said, "parts": run}], joins=said is not turn or None)
            said = {"role": role}

    def piece(self, role: str, run: list[dict[str, Any]], name: str | None) -> ChatMessage:
        if run and run[0]["type"] in _RESULTS:
            return self.result(role, run[0])
        if role == "assistant":
            return self.answer(run)
        contents = [content for part in run if (content := _content(part)) is not None]
        contents = contents or [_shown(run[0])]
        if role == "tool":
            id, tool_name = self.calls.answered(None)
            return ToolExecutionResultMessage(id, tool_name, contents)
        self.calls.interrupted()
        return UserMessage(contents, name)

    def answer(self, run: list[dict[str, Any]]) -> AiMessage:
        thoughts = [part for part in run if part["type"] in _THOUGHTS]
        asked = [part for part in run if part["type"] in _CALLS]
        others = [part for part in run if part["type"] not in (*_THOUGHTS, *_CALLS)]
        texts = [text for part in others if (text := _text(part)) is not None]
        calls = [self.request(part) for part in asked]
        if others and not texts and not calls and not thoughts:
            texts = [_shown(others[0]).text]
        thinking = "\n".join(filter(None, (text_in(part, "content") for part in thoughts)))
        types = [part["type"] for part in asked]
        own = {} if set(types) <= {"tool_call"} else {_NAME: {"types": types}}
        return AiMessage("\n".join(texts) if texts else None, calls, thinking or None, own)

    def request(self, part: dict[str, Any]) -> ToolExecutionRequest:
        name = text_in(part, "name")
        arguments = arguments_text(part.get(_CALLS[part["type"]]))
        return ToolExecutionRequest(self.calls.opened(text_in(part, "id"), name), name, arguments)

    def result(self, role: str, part: dict[str, Any]) -> ToolExecutionResultMessage:
        property = _RESULTS[part["type"]]
        if property not in part and _OLD_RESULT in part:
            property = _OLD_RESULT
        id, name = self.calls.answered(text_in(part, "id"), text_in(part, "name"))
        said = [role, part["type"], property]
        own = {} if said == _USUAL else {_NAME: {"types": said}}
        text = arguments_text(part.get(property)) or ""
        return ToolExecutionResultMessage(id, name, text, None, own)


_USUAL = ["tool", "tool_call_response", "response"]


def _runs(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return parts in runs: each result alone, and what stands between results."""
    runs: list[list[dict[str, Any]]] = []
    for part in parts:
        is_result = part["type"] in _RESULTS
        if is_result or not runs or runs[-1][0]["type"] in _RESULTS:
            runs.append([part])
        else:
            runs[-1].append(part)
    return runs or [[]]


def _text(part: dict[str, Any]) -> str | None:
    """Return the text of a part, also of one that is not known; None for media and others."""
    if part.get("type") == "text":
        return text_in(part, "content") or ""
    if part.get("type") in ("blob", "uri", "file"):
        return None
    return "\n".join(texts_in(part)) or None


def _content(part: dict[str, Any]) -> Content | None:
    """Return a part as content; None for one that LangChain4j's model has no place for."""
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
        return media_content(modality, url, data, mime_type, DetailLevel.LOW)
    return PdfFileContent(PdfFile(url, data, mime_type)) if mime_type == PDF else None


def _shown(part: dict[str, Any]) -> TextContent:
    """Return a text that names what a message cannot hold."""
    kind = name_of(part, "modality", "type") or "part"
    return stand_in(kind, name_of(part, "file_id", "uri", "id"))


# Writing


def render(messages: Iterable[ChatMessage]) -> Rendering:
    return _Writer(ids_of_calls(messages)).write_each(messages)


class _Writer(Writer):
    format = _NAME
    within = _INPUT
    beside = (_SYSTEM,)

    def join(self, last: dict[str, Any], value: dict[str, Any], joins: bool) -> bool:
        parts, more = last.get("parts"), value.get("parts")
        if not joins or not isinstance(parts, list) or not isinstance(more, list):
            return False
        if last.get("role") != value.get("role"):
            return False
        parts += more
        return True

    def write(self, message: ChatMessage) -> Iterator[dict[str, Any]]:
        match message:
            case SystemMessage():
                yield {"role": "system", "parts": [{"type": "text", "content": message.text}]}
            case UserMessage():
                self.calls.interrupted()
                parts = [part for each in message.contents if (part := self.part(each))]
                name = {"name": message.name} if message.name else {}
                yield {"role": "user", "parts": parts, **name}
            case AiMessage():
                yield {"role": "assistant", "parts": [*self.answer(message)]}
            case ToolExecutionResultMessage():
                yield self.result(message)

    def answer(self, message: AiMessage) -> Iterator[dict[str, Any]]:
        if message.thinking is not None:
            yield {"type": "reasoning", "content": message.thinking}
        if message.text is not None:
            yield {"type": "text", "content": message.text}
        calls = self.calls_of(message)
        types = _types(message)
        is_known = len(types) == len(calls) and all(type in [*_CALLS] for type in types)
        for call, type in zip(
            calls, types if is_known else ["tool_call"] * len(calls), strict=True
        ):
            part = {"type": type, "id": self.calls.opened(call.id, call.name)}
            yield part | {"name": call.name or "", _CALLS[type]: _value(call.arguments or "")}

    def result(self, message: ToolExecutionResultMessage) -> dict[str, Any]:
        if message.is_error:
            self.lose("that the result is an error")
        if any(not isinstance(content, TextContent) for content in message.contents):
            self.lose("contents of a result that are not text")
        elif len(message.contents) > 1:
            self.lose("how the text is divided into parts")
        types = _types(message)
        is_known = len(types) == 3 and types[0] in ("user", "assistant", "tool")
        is_known = is_known and types[1] in [*_RESULTS]
        is_known = is_known and types[2] in (_RESULTS[types[1]], _OLD_RESULT)
        role, type, property = types if is_known else _USUAL
        id, known = self.calls.answered(message.id)
        said = message.tool_name if message.tool_name != known else None
        name = {"name": said} if said else {}
        part = {"type": type, "id": id or "", **name, property: _value(text_of(message))}
        return {"role": role, "parts": [part]}

    def part(self, content: Content | None) -> dict[str, Any] | None:
        if isinstance(content, TextContent):
            return {"type": "text", "content": content.text}
        found = media_of(content)
        if content is None or found is None:
            self.lose("empty content" if content is None else f"{content.type.lower()} content")
            return None
        if isinstance(content, ImageContent):
            if content.detail_level is not DetailLevel.LOW:
                self.lose(f"the detail level {content.detail_level.value.lower()!r}")
            if content.image.revised_prompt:
                self.lose("the revised prompt of an image")
        return self.media(*found)

    def media(self, kind: str, media: Media) -> dict[str, Any]:
        modality = "document" if kind == "file" else kind
        told = {"modality": modality}
        told |= {"mime_type": media.mime_type} if media.mime_type else {}
        data = data_of(media)
        if not data:
            return {"type": "uri", **told, "uri": media.url}
        if media.url:
            self.lose(f"the url of {modality} content that is given inline too")
        return {"type": "blob", **told, "content": data}


def _types(message: ChatMessage) -> list[Any]:
    """Return what the attributes tell of the parts that the calls or the result were."""
    own = getattr(message, "attributes", {}).get(_NAME)
    types = own.get("types") if isinstance(own, Mapping) else None
    return types if isinstance(types, list) else []


def _value(text: str) -> Any:
    """Return JSON text as an object or a list if reading returns the same text, else the text."""
    value = _decoded(text) if text.startswith(("{", "[")) else text
    return value if isinstance(value, str) or arguments_text(value) == text else text


_Reader.writer = _Writer
FORMAT = Format(_NAME, find, parse, render)
