"""Messages read from JSON, with LangChain4j's rules for what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from chatmemory.core.codec.json_text import decode_json
from chatmemory.core.codec.properties import Properties, read_typed
from chatmemory.core.contents import (
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
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

M = TypeVar("M", bound=Media)


def message_from_json(text: str) -> ChatMessage | None:
    """Return the message of a JSON text; None for `null`.

    Raises InvalidMessage, naming the property.
    """
    return message_from_dict(decode_json(text))


@overload
def messages_from_json(text: str | None, nulls: Literal[False]) -> list[ChatMessage]: ...


@overload
def messages_from_json(text: str | None, nulls: bool = True) -> list[ChatMessage | None]: ...


def messages_from_json(
    text: str | None, nulls: bool = True
) -> list[ChatMessage] | list[ChatMessage | None]:
    """Return the messages of a JSON array; [] for None and `null`, as LangChain4j does.

    LangChain4j reads null items too. With `nulls=False` they are refused. Raises InvalidMessage.
    """
    values = None if text is None else decode_json(text)
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidMessage("expected a JSON array of messages")
    if not nulls and None in values:
        raise InvalidMessage(f"messages[{values.index(None)}] is null")
    return [message_from_dict(value) for value in values]


def message_from_dict(value: Any) -> ChatMessage | None:
    """Return the message of decoded JSON values. Raises InvalidMessage, naming the property."""
    if value is None:
        return None
    return read_typed(value, _MESSAGES, "message")


# A message is built after its block, so that an unknown property is the first thing refused.


def _system(given: Properties) -> SystemMessage:
    with given:
        text = given.text("text")
    return SystemMessage(text)  # type: ignore[arg-type]


def _user(given: Properties) -> UserMessage:
    with given:
        contents = given.items("contents", _content)
        name, attributes = given.text("name"), given.attributes()
    return UserMessage(contents or (), name, attributes)


def _ai(given: Properties) -> AiMessage:
    with given:
        text, thinking = given.text("text"), given.text("thinking")
        requests = given.items("toolExecutionRequests", _request)
        attributes = given.attributes()
    return AiMessage(text, tuple(requests or ()), thinking, attributes)


def _request(values: Any) -> ToolExecutionRequest:
    with Properties(values, "tool execution request") as given:
        return ToolExecutionRequest(given.text("id"), given.text("name"), given.text("arguments"))


def _result(given: Properties) -> ToolExecutionResultMessage:
    with given:
        id, tool_name = given.text("id"), given.text("toolName")
        text, contents = given.text("text"), given.items("contents", _content)
        is_error, attributes = given.flag("isError"), given.attributes()
    if text is not None and contents:
        raise InvalidMessage("Either text or contents must be provided, not both")
    said = contents or () if text is None else text
    return ToolExecutionResultMessage(id, tool_name, said, is_error, attributes)


def _custom(given: Properties) -> CustomMessage:
    with given:
        return CustomMessage(given.attributes())


_MESSAGES: dict[str, Callable[[Properties], ChatMessage]] = {
    "SYSTEM": _system,
    "USER": _user,
    "AI": _ai,
    "TOOL_EXECUTION_RESULT": _result,
    "CUSTOM": _custom,
}


def _content(value: Any) -> Content:
    return read_typed(value, _CONTENTS, "content")


def _text(given: Properties) -> TextContent:
    with given:
        text = given.text("text")
    return TextContent(text)  # type: ignore[arg-type]


def _image(given: Properties) -> ImageContent:
    with given:
        image, level = given.take("image"), given.take("detailLevel")
    return ImageContent(_media(Image, image), _detail_level(level))  # type: ignore[arg-type]


def _detail_level(value: Any) -> DetailLevel | None:
    """Return a level by name or, as Jackson allows, by its place in LangChain4j's list."""
    levels = list(DetailLevel)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(levels):
        return levels[value]
    if value in levels:
        return DetailLevel(value)
    raise InvalidMessage(f"detailLevel must be one of {', '.join(levels)}")


def _media(kind: type[M], values: Any) -> M | None:
    if values is None:
        return None
    with Properties(values, kind.__name__) as given:
        fields = {field: given.text(name) for field, name in _MEDIA_FIELDS[kind].items()}
    return kind(**fields)


_ANY_MEDIA = {"url": "url", "base64_data": "base64Data", "mime_type": "mimeType"}
_MEDIA_FIELDS: dict[type[Media], dict[str, str]] = {
    Image: {**_ANY_MEDIA, "revised_prompt": "revisedPrompt"},
    Audio: {**_ANY_MEDIA, "binary_data": "binaryData"},
    Video: _ANY_MEDIA,
    PdfFile: _ANY_MEDIA,
}


def _reader_of(
    content: Callable[[Any], Content], kind: type[Media], name: str
) -> Callable[[Properties], Content]:
    def read(given: Properties) -> Content:
        with given:
            media = given.take(name)
        return content(_media(kind, media))

    return read


_CONTENTS: dict[str, Callable[[Properties], Content]] = {
    "AUDIO": _reader_of(AudioContent, Audio, "audio"),
    "IMAGE": _image,
    "PDF": _reader_of(PdfFileContent, PdfFile, "pdfFile"),
    "TEXT": _text,
    "VIDEO": _reader_of(VideoContent, Video, "video"),
}
