"""Messages written as JSON, with the properties in LangChain4j's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from chatmemory.core.contents import (
    Audio,
    AudioContent,
    Content,
    Image,
    ImageContent,
    Media,
    PdfFileContent,
    TextContent,
    VideoContent,
)
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.given import several
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.spelling import write_json


def message_to_json(message: ChatMessage | None) -> str:
    """Return one message as JSON text; None gives `null`."""
    return write_json(None if message is None else _values(message, _TO_BE_WRITTEN))


def messages_to_json(messages: Iterable[ChatMessage | None]) -> str:
    """Return messages as the text of a JSON array."""
    return write_json(
        None if message is None else _values(message, _TO_BE_WRITTEN)
        for message in several(messages)
    )


def message_to_dict(message: ChatMessage | None) -> dict[str, Any] | None:
    """Return one message as JSON values, the properties in LangChain4j's order."""
    return None if message is None else _values(message, _TO_KEEP)


class _Ways(NamedTuple):
    """What applies a function to each item, and what makes of attributes those of the values."""

    each: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _list(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    return [function(item) for item in items]


_TO_KEEP = _Ways(_list, dict)
_TO_BE_WRITTEN = _Ways(map, lambda attributes: attributes)  # nothing is made before


def _values(message: ChatMessage, ways: _Ways) -> dict[str, Any]:
    return {**_fields(message, ways), "type": message.type.value}


def _fields(message: ChatMessage, ways: _Ways) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"text": message.text}
        case UserMessage():
            return _present(
                name=message.name or None,
                contents=ways.each(_content, message.contents),
                attributes=ways.attributes(message.attributes) or None,
            )
        case AiMessage():
            return _present(
                text=message.text,
                thinking=message.thinking,
                toolExecutionRequests=ways.each(_request, message.tool_execution_requests),
                attributes=ways.attributes(message.attributes),
            )
        case ToolExecutionResultMessage():
            return _present(
                id=message.id,
                toolName=message.tool_name,
                contents=ways.each(_content, message.contents),
                isError=message.is_error,
                attributes=ways.attributes(message.attributes),
            )
        case CustomMessage():
            return {"attributes": ways.attributes(message.attributes)}
    raise InvalidMessage(f"a {type(message).__name__} is not a chat message")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _request(request: ToolExecutionRequest | None) -> dict[str, Any] | None:
    if request is None:
        return None
    return _present(id=request.id, name=request.name, arguments=request.arguments)


def _content(content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    values: dict[str, Any]
    match content:
        case TextContent():
            values = {"text": content.text}
        case ImageContent():
            values = {"image": _media(content.image), "detailLevel": content.detail_level.value}
        case AudioContent():
            values = _present(audio=_media(content.audio))
        case VideoContent():
            values = _present(video=_media(content.video))
        case PdfFileContent():
            values = _present(pdfFile=_media(content.pdf_file))
        case _:
            raise InvalidMessage(f"a {type(content).__name__} is not a content")
    return {**values, "type": content.type}


def _media(media: Media | None) -> dict[str, Any] | None:
    if media is None:
        return None
    return _present(
        url=media.url,
        binaryData=media.binary_data if isinstance(media, Audio) else None,
        base64Data=media.base64_data,
        mimeType=media.mime_type,
        revisedPrompt=media.revised_prompt if isinstance(media, Image) else None,
    )
