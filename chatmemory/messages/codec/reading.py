"""Reads messages from JSON, and accepts the same JSON as LangChain4j with its library Jackson."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar, overload

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.codec.json_text import decode_json
from chatmemory.messages.codec.writing import write_json
from chatmemory.messages.contents import (
    Audio,
    AudioContent,
    Content,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    TextContent,
    Video,
    VideoContent,
)
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    OpenAttributes,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

T = TypeVar("T")

# The spellings of a boolean that Jackson accepts in a string.
_FLAGS = {"true": True, "True": True, "TRUE": True, "": None, "null": None}
_FLAGS |= {"false": False, "False": False, "FALSE": False}


class Properties:
    """The properties of a JSON object that are not read yet. Methods such as `take` remove a
    property and return its value. At the end, `make` raises an error if properties are left.

    The constructor's argument `what` names the kind of object in errors, such as "message". `type`
    is the value of the object's property `type`, or "" if there is none.
    """

    def __init__(self, values: JsonValue, what: str) -> None:
        if not isinstance(values, dict):
            raise InvalidMessage(f"a {what} must be a JSON object")
        self._values = dict(values)
        self._what = what
        self.type = ""

    def make(self, kind: Callable[..., T], *values: object) -> T:
        """Return `kind(*values)`. Call this method after all properties have been taken.

        Raises InvalidMessage if a property is left, because LangChain4j refuses unknown properties.
        """
        if self._values:
            name = f"{self.type} {self._what}".lstrip()
            unknown = ", ".join(sorted(map(repr, self._values)))
            article = "an" if name[0] in "AEI" else "a"
            raise InvalidMessage(f"{article} {name} has no property {unknown}")
        return kind(*values)

    def take(self, name: str) -> JsonValue:
        """Remove a property from this object, and return its value unchanged; None if it is
        missing.
        """
        return self._values.pop(name, None)

    def text(self, name: str) -> str | None:
        """Take a property, and return its value as a string; None if it is missing. Numbers and
        booleans become their JSON text, as in Jackson.
        """
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return write_json(value)
        raise InvalidMessage(f"{name} must be a string")

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if isinstance(value, str):
            value = _FLAGS.get(value.strip(), value)
        if value is not None and not isinstance(value, int):
            raise InvalidMessage(f"{name} must be true or false")
        return None if value is None else bool(value)

    def attributes(self) -> JsonDict:
        value = self.take("attributes")
        if value is not None and not isinstance(value, dict):
            raise InvalidMessage("attributes must be a JSON object")
        return value or {}

    def attributes_if_stated(self) -> JsonDict:
        """Take the property `attributes`, and return its value. If the property is missing, return
        an empty `OpenAttributes`, which marks the attributes as unknown.
        """
        return self.attributes() if "attributes" in self._values else OpenAttributes()

    def items(self, name: str, read: Callable[[JsonValue], T]) -> list[T | None] | None:
        """Take a property that is a JSON array, and return the array with `read` applied to each
        item. A null item becomes None.

        Returns None if the property is missing or null. Raises InvalidMessage for any other value.
        """
        value = self.take(name)
        if value is not None and not isinstance(value, list):
            raise InvalidMessage(f"{name} must be a JSON array")
        return None if value is None else [None if v is None else read(v) for v in value]


def read_typed(value: JsonValue, known: Mapping[str, Callable[[Properties], T]], what: str) -> T:
    """Return the object that a JSON value describes. The value's property `type` selects the
    function of `known` that makes the object.

    `what` names the kind of object in errors. Raises InvalidMessage if `type` is missing, unknown
    or given twice.
    """
    if not isinstance(value, dict):
        raise InvalidMessage(f"a {what} must be a JSON object with a type")
    if "type" in getattr(value, "twice", ()):
        raise InvalidMessage(f"a {what} names its type twice")
    properties = Properties(value, what)
    kind = properties.take("type")
    if kind is None:
        raise InvalidMessage(f"a {what} needs a type: one of {', '.join(known)}")
    if not isinstance(kind, str) or kind not in known:
        shown = repr(kind) if isinstance(kind, str | int | float) else "that is not a string"
        raise InvalidMessage(f"unknown {what} type {shown}: use one of {', '.join(known)}")
    properties.type = kind
    return known[kind](properties)


M = TypeVar("M", bound=Media)


def message_from_json(text: str) -> ChatMessage | None:
    """Return the message in a JSON text; None for `null`.

    Raises InvalidMessage, which names the wrong property.
    """
    return message_from_dict(decode_json(text))


@overload
def messages_from_json(text: str | None, nulls: Literal[False]) -> list[ChatMessage]: ...


@overload
def messages_from_json(text: str | None, nulls: bool = True) -> list[ChatMessage | None]: ...


def messages_from_json(
    text: str | None, nulls: bool = True
) -> list[ChatMessage] | list[ChatMessage | None]:
    """Return the messages of a JSON array; [] for None and for `null`, as in LangChain4j.

    A null item becomes None, but raises InvalidMessage with `nulls=False`. Raises InvalidMessage
    for JSON that is neither an array nor `null`, and for an item that is not a valid message.
    """
    values = None if text is None else decode_json(text)
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidMessage("expected a JSON array of messages")
    if not nulls and None in values:
        raise InvalidMessage(f"messages[{values.index(None)}] is null")
    return [message_from_dict(value) for value in values]


def message_from_dict(value: JsonValue) -> ChatMessage | None:
    """Return the message that decoded JSON describes; None for None. Raises InvalidMessage, which
    names the wrong property.
    """
    if value is None:
        return None
    return read_typed(value, _MESSAGES, "message")


def _system(properties: Properties) -> SystemMessage:
    return properties.make(SystemMessage, properties.text("text"), OpenAttributes())


def _user(properties: Properties) -> UserMessage:
    contents = properties.items("contents", _content) or ()
    return properties.make(UserMessage, contents, properties.text("name"), properties.attributes())


def _ai(properties: Properties) -> AiMessage:
    text, thinking = properties.text("text"), properties.text("thinking")
    requests = properties.items("toolExecutionRequests", _request)
    attributes = properties.attributes_if_stated()
    return properties.make(AiMessage, text, requests, thinking, attributes)


def _request(values: JsonValue) -> ToolExecutionRequest:
    properties = Properties(values, "tool execution request")
    id, name, arguments = (
        properties.text("id"),
        properties.text("name"),
        properties.text("arguments"),
    )
    return properties.make(ToolExecutionRequest, id, name, arguments)


def _result(properties: Properties) -> ToolExecutionResultMessage:
    id, tool_name = properties.text("id"), properties.text("toolName")
    text, contents = properties.text("text"), properties.items("contents", _content)
    is_error, attributes = properties.flag("isError"), properties.attributes_if_stated()

    def result() -> ToolExecutionResultMessage:
        if text is not None and contents:
            raise InvalidMessage("Either text or contents must be provided, not both")
        content = contents or () if text is None else text
        return ToolExecutionResultMessage(id, tool_name, content, is_error, attributes)

    return properties.make(result)


def _custom(properties: Properties) -> CustomMessage:
    return properties.make(CustomMessage, properties.attributes())


_MESSAGES: dict[str, Callable[[Properties], ChatMessage]] = {
    "SYSTEM": _system,
    "USER": _user,
    "AI": _ai,
    "TOOL_EXECUTION_RESULT": _result,
    "CUSTOM": _custom,
}


def _content(value: JsonValue) -> Content:
    return read_typed(value, _CONTENTS, "content")


def _text(properties: Properties) -> TextContent:
    return properties.make(TextContent, properties.text("text"))


def _image(properties: Properties) -> ImageContent:
    image, level = properties.take("image"), properties.take("detailLevel")
    return properties.make(lambda: ImageContent(_media(Image, image), _detail_level(level)))  # type: ignore[arg-type]  # the lambda is called only with the media


def _detail_level(value: JsonValue) -> DetailLevel | None:
    """Return a level of detail by its name, or by its index in LangChain4j's list, as Jackson
    allows.
    """
    levels = list(DetailLevel)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(levels):
        return levels[value]
    if value in levels:
        return DetailLevel(value)
    raise InvalidMessage(f"detailLevel must be one of {', '.join(levels)}")


def _media(kind: type[M], values: JsonValue) -> M | None:
    if values is None:
        return None
    properties = Properties(values, kind.__name__)
    fields = {field: properties.text(name) for field, name in _MEDIA_FIELDS[kind].items()}
    return properties.make(lambda: kind(**fields))


_ANY_MEDIA = {"url": "url", "base64_data": "base64Data", "mime_type": "mimeType"}
_MEDIA_FIELDS: dict[type[Media], dict[str, str]] = {
    Image: {**_ANY_MEDIA, "revised_prompt": "revisedPrompt"},
    Audio: {**_ANY_MEDIA, "binary_data": "binaryData"},
    Video: _ANY_MEDIA,
    PdfFile: _ANY_MEDIA,
}


def _reader_of(
    content: Callable[[JsonValue], Content], kind: type[Media], name: str
) -> Callable[[Properties], Content]:
    def read(properties: Properties) -> Content:
        media = properties.take(name)
        return properties.make(lambda: content(_media(kind, media)))

    return read


_CONTENTS: dict[str, Callable[[Properties], Content]] = {
    "AUDIO": _reader_of(AudioContent, Audio, "audio"),
    "IMAGE": _image,
    "PDF": _reader_of(PdfFileContent, PdfFile, "pdfFile"),
    "TEXT": _text,
    "VIDEO": _reader_of(VideoContent, Video, "video"),
}
