"""Messages as JSON, byte for byte as LangChain4j's ChatMessageSerializer writes and reads them.

Reading accepts and refuses what LangChain4j (Jackson) does: unknown properties are refused, scalars
become strings where a string is due, text behind the first JSON value is ignored. Two things cannot
be reproduced: Jackson writes a user message's attributes in hash order (here: as given), and a
float is written in Java's notation from Python's digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    Audio,
    AudioContent,
    ChatMessage,
    Content,
    CustomMessage,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    Video,
    VideoContent,
)

DEPTH_MAX = 200

T = TypeVar("T")
M = TypeVar("M", bound=Media)

# Writing


def message_to_json(message: ChatMessage | None) -> str:
    """One message as LangChain4j writes it; None gives `null`."""
    return write_json(message_to_dict(message))


def messages_to_json(messages: Iterable[ChatMessage | None]) -> str:
    """A JSON array of messages."""
    return write_json([message_to_dict(message) for message in messages])


def message_to_dict(message: ChatMessage | None) -> dict[str, Any] | None:
    """The message as JSON values, keys in LangChain4j's order."""
    if message is None:
        return None
    return {**_fields(message), "type": message.type.value}


def _fields(message: ChatMessage) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"text": message.text}
        case UserMessage():
            return _present(
                name=message.name or None,
                contents=[_content_to_dict(content) for content in message.contents],
                attributes=dict(message.attributes) or None,
            )
        case AiMessage():
            return _present(
                text=message.text,
                thinking=message.thinking,
                toolExecutionRequests=[
                    _request_to_dict(request) for request in message.tool_execution_requests
                ],
                attributes=dict(message.attributes),
            )
        case ToolExecutionResultMessage():
            return _present(
                id=message.id,
                toolName=message.tool_name,
                contents=[_content_to_dict(content) for content in message.contents],
                isError=message.is_error,
                attributes=dict(message.attributes),
            )
        case CustomMessage():
            return {"attributes": dict(message.attributes)}
    raise InvalidMessage(f"{type(message).__name__} is no chat message")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _request_to_dict(request: ToolExecutionRequest | None) -> dict[str, Any] | None:
    if request is None:
        return None
    return _present(id=request.id, name=request.name, arguments=request.arguments)


def _content_to_dict(content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    values: dict[str, Any]
    match content:
        case TextContent():
            values = {"text": content.text}
        case ImageContent():
            values = {
                "image": _media_to_dict(content.image),
                "detailLevel": content.detail_level.value,
            }
        case AudioContent():
            values = _present(audio=_media_to_dict(content.audio))
        case VideoContent():
            values = _present(video=_media_to_dict(content.video))
        case PdfFileContent():
            values = _present(pdfFile=_media_to_dict(content.pdf_file))
        case _:
            raise InvalidMessage(f"{type(content).__name__} is no content")
    return {**values, "type": content.type}


def _media_to_dict(media: Media | None) -> dict[str, Any] | None:
    if media is None:
        return None
    return _present(
        url=media.url,
        binaryData=media.binary_data if isinstance(media, Audio) else None,
        base64Data=media.base64_data,
        mimeType=media.mime_type,
        revisedPrompt=media.revised_prompt if isinstance(media, Image) else None,
    )


def write_json(value: Any) -> str:
    """Compact JSON in Jackson's spelling: `\\u001F` for controls, `1.0E20` for floats.

    Raises InvalidMessage for what JSON has no word for.
    """
    try:
        return _write(value)
    except RecursionError as error:
        raise InvalidMessage("the message is nested too deeply to be written") from error


def _write(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _write_text(value)
        case int():
            return _write_int(value)
        case float():
            return _write_float(value)
        case Mapping():
            pairs = (f"{_write_text(str(key))}:{_write(each)}" for key, each in value.items())
            return "{" + ",".join(pairs) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_write, value)) + "]"
    raise InvalidMessage(f"JSON has no word for {type(value).__name__}")


def _write_text(text: str) -> str:
    quoted: str = json.encoder.encode_basestring(text)
    if "\\u00" not in quoted:
        return quoted
    return _UPPER_CASED.sub(lambda found: found[0][:2] + found[0][2:].upper(), quoted)


# An escaped backslash is skipped, so that `\\u001f` in a text stays as it is.
_UPPER_CASED = re.compile(r"\\u00[0-9a-f]{2}|\\\\")


def _write_int(number: int) -> str:
    try:
        return str(number)
    except ValueError as error:
        raise InvalidMessage("a number has too many digits") from error


def _write_float(number: float) -> str:
    """As Java's Double.toString: plain from 0.001 up to 10,000,000, else `1.0E20`."""
    if number != number or number in (float("inf"), float("-inf")):
        raise InvalidMessage("JSON has no word for NaN and Infinity")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


# Reading


class _Object(dict[str, Any]):
    """A JSON object that remembers whether `type` stood in it twice."""

    type_twice = False


def message_from_json(text: str) -> ChatMessage | None:
    """The message of a JSON text; None for `null`. Raises InvalidMessage, naming the property."""
    return message_from_dict(decode_json(text))


def messages_from_json(text: str | None) -> list[ChatMessage | None]:
    """The messages of a JSON array; [] for None and `null`, as LangChain4j has it."""
    values = None if text is None else decode_json(text)
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidMessage("expected a JSON array of messages")
    return [message_from_dict(value) for value in values]


def message_from_dict(value: Any) -> ChatMessage | None:
    """The message of decoded JSON values. Raises InvalidMessage, naming the property."""
    if value is None:
        return None
    kind, values = _typed(value, _MESSAGES, "message")
    return _MESSAGES[kind](values)


def decode_json(text: str) -> Any:
    """The first JSON value of a text, as Jackson reads it. Raises InvalidMessage."""
    if not isinstance(text, str):
        raise InvalidMessage("expected JSON text")
    text = text.lstrip(" \t\r\n")
    if not text:
        raise InvalidMessage("no JSON: the text is empty")
    try:
        return _DECODER.raw_decode(text)[0]
    except RecursionError as error:
        raise InvalidMessage("the JSON is nested too deeply") from error
    except ValueError as error:
        raise InvalidMessage(f"not valid JSON: {error}") from error


def load_json(text: str) -> Any:
    """The one JSON value of a text, and nothing behind it. Raises InvalidMessage.

    Values deeper than `DEPTH_MAX` are refused: what is read here can be written, shown and read
    again, however much of Python's stack is in use then.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise InvalidMessage("the JSON is nested too deeply") from error
    except ValueError as error:
        raise InvalidMessage(f"not valid JSON: {error}") from error
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return
        level = [
            inner for each in level for inner in (each.values() if isinstance(each, dict) else each)
        ]
    raise InvalidMessage(f"the JSON is nested too deeply: at most {DEPTH_MAX} levels are read")


def _pairs(pairs: list[tuple[str, Any]]) -> _Object:
    found = _Object(pairs)
    found.type_twice = len(found) < len(pairs) and sum(name == "type" for name, _ in pairs) > 1
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:40]} is too large a number")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite
)


def _typed(value: Any, known: Mapping[str, Any], what: str) -> tuple[str, dict[str, Any]]:
    """The type id of an object and its other properties."""
    if not isinstance(value, dict):
        raise InvalidMessage(f"a {what} is a JSON object with a type")
    if getattr(value, "type_twice", False):
        raise InvalidMessage(f"a {what} names its type twice")
    kind = value.get("type")
    if kind is None:
        raise InvalidMessage(f"a {what} needs a type: one of {', '.join(known)}")
    if not isinstance(kind, str) or kind not in known:
        shown = repr(kind) if isinstance(kind, str | int | float) else "that is no string"
        raise InvalidMessage(f"unknown {what} type {shown}: one of {', '.join(known)}")
    return kind, {name: each for name, each in value.items() if name != "type"}


# The spellings that Jackson takes.
_FLAGS = {"true": True, "True": True, "TRUE": True, "": None, "null": None}
_FLAGS |= {"false": False, "False": False, "FALSE": False}


class _Reader:
    """The properties of one JSON object, taken out by name; what remains is unknown."""

    def __init__(self, values: Any, what: str) -> None:
        if not isinstance(values, dict):
            raise InvalidMessage(f"{what} must be a JSON object")
        self._values = dict(values)
        self._what = what

    def text(self, name: str) -> str | None:
        """A string; other scalars are read as their text, as Jackson does."""
        value = self._values.pop(name, None)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return write_json(value)
        raise InvalidMessage(f"{name} must be a string")

    def flag(self, name: str) -> bool | None:
        value = self._values.pop(name, None)
        if isinstance(value, str):
            value = _FLAGS.get(value.strip(), value)
        if value is None or isinstance(value, int):
            return None if value is None else bool(value)
        raise InvalidMessage(f"{name} must be true or false")

    def attributes(self) -> dict[str, Any]:
        value = self._values.pop("attributes", None)
        if value is not None and not isinstance(value, dict):
            raise InvalidMessage("attributes must be a JSON object")
        return dict(value or {})

    def items(self, name: str, read: Callable[[Any], T]) -> list[T | None] | None:
        value = self._values.pop(name, None)
        if value is not None and not isinstance(value, list):
            raise InvalidMessage(f"{name} must be a JSON array")
        return None if value is None else [None if v is None else read(v) for v in value]

    def take(self, name: str) -> Any:
        return self._values.pop(name, None)

    def done(self) -> None:
        if self._values:
            unknown = ", ".join(sorted(map(repr, self._values)))
            raise InvalidMessage(f"{self._what} has no property {unknown}")


def _read_system(values: Any) -> SystemMessage:
    reader = _Reader(values, "a SYSTEM message")
    text = reader.text("text")
    reader.done()
    return SystemMessage(text)  # type: ignore[arg-type]


def _read_user(values: Any) -> UserMessage:
    reader = _Reader(values, "a USER message")
    contents = reader.items("contents", _read_content)
    name, attributes = reader.text("name"), reader.attributes()
    reader.done()
    return UserMessage(contents or (), name, attributes)


def _read_ai(values: Any) -> AiMessage:
    reader = _Reader(values, "an AI message")
    text, thinking = reader.text("text"), reader.text("thinking")
    requests = reader.items("toolExecutionRequests", _read_request)
    attributes = reader.attributes()
    reader.done()
    return AiMessage(text, tuple(requests or ()), thinking, attributes)


def _read_request(values: Any) -> ToolExecutionRequest:
    reader = _Reader(values, "a tool execution request")
    request = ToolExecutionRequest(reader.text("id"), reader.text("name"), reader.text("arguments"))
    reader.done()
    return request


def _read_result(values: Any) -> ToolExecutionResultMessage:
    reader = _Reader(values, "a TOOL_EXECUTION_RESULT message")
    id, tool_name = reader.text("id"), reader.text("toolName")
    text, contents = reader.text("text"), reader.items("contents", _read_content)
    is_error, attributes = reader.flag("isError"), reader.attributes()
    reader.done()
    if text is not None and contents:
        raise InvalidMessage("Either text or contents must be provided, not both")
    said = contents or () if text is None else text
    return ToolExecutionResultMessage(id, tool_name, said, is_error, attributes)


def _read_custom(values: Any) -> CustomMessage:
    reader = _Reader(values, "a CUSTOM message")
    attributes = reader.attributes()
    reader.done()
    return CustomMessage(attributes)


_MESSAGES: dict[str, Callable[[Any], ChatMessage]] = {
    "SYSTEM": _read_system,
    "USER": _read_user,
    "AI": _read_ai,
    "TOOL_EXECUTION_RESULT": _read_result,
    "CUSTOM": _read_custom,
}


def _read_content(value: Any) -> Content:
    kind, values = _typed(value, _CONTENTS, "content")
    return _CONTENTS[kind](values)


def _read_text(values: Any) -> TextContent:
    reader = _Reader(values, "a TEXT content")
    text = reader.text("text")
    reader.done()
    return TextContent(text)  # type: ignore[arg-type]


def _read_image(values: Any) -> ImageContent:
    reader = _Reader(values, "an IMAGE content")
    image, level = reader.take("image"), reader.take("detailLevel")
    reader.done()
    media = None if image is None else _read_media(Image, image)
    return ImageContent(media, _read_level(level))  # type: ignore[arg-type]


def _read_level(value: Any) -> DetailLevel | None:
    """A level by name or, as Jackson allows, by its place in LangChain4j's list."""
    levels = list(DetailLevel)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(levels):
        return levels[value]
    if value in levels:
        return DetailLevel(value)
    raise InvalidMessage(f"detailLevel must be one of {', '.join(levels)}")


def _read_media(kind: type[M], values: Any) -> M:
    reader = _Reader(values, f"a {kind.__name__}")
    fields = {name: reader.text(key) for name, key in _MEDIA_FIELDS[kind].items()}
    reader.done()
    return kind(**fields)


_ANY_MEDIA = {"url": "url", "base64_data": "base64Data", "mime_type": "mimeType"}
_MEDIA_FIELDS: dict[type[Media], dict[str, str]] = {
    Image: {**_ANY_MEDIA, "revised_prompt": "revisedPrompt"},
    Audio: {**_ANY_MEDIA, "binary_data": "binaryData"},
    Video: _ANY_MEDIA,
    PdfFile: _ANY_MEDIA,
}


def _reads_media(
    content: Callable[[Any], Content], kind: type[Media], name: str
) -> Callable[[Any], Content]:
    def read(values: Any) -> Content:
        reader = _Reader(values, f"content with {name}")
        media = reader.take(name)
        reader.done()
        return content(None if media is None else _read_media(kind, media))

    return read


_CONTENTS: dict[str, Callable[[Any], Content]] = {
    "AUDIO": _reads_media(AudioContent, Audio, "audio"),
    "IMAGE": _read_image,
    "PDF": _reads_media(PdfFileContent, PdfFile, "pdfFile"),
    "TEXT": _read_text,
    "VIDEO": _reads_media(VideoContent, Video, "video"),
}
