"""Messages written as JSON, with the properties in LangChain4j's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
from chatmemory.core.spelling import quoted, write_json

Path = tuple["Path", str] | None  # the path of what holds a value, and its place there


def message_to_json(message: ChatMessage | None) -> str:
    """Return one message as JSON text; None gives `null`."""
    match message:
        case UserMessage(contents=(TextContent(text=text),), name=None) if not message.attributes:
            return f'{{"contents":[{{"text":{quoted(text)},"type":"TEXT"}}],"type":"USER"}}'
    return write_json(None if message is None else _values(message))


def messages_to_json(messages: Iterable[ChatMessage | None]) -> str:
    """Return messages as the text of a JSON array."""
    return write_json(
        None if message is None else _values(message) for message in several(messages)
    )


def message_to_dict(message: ChatMessage | None) -> dict[str, Any] | None:
    """Return one message as JSON values, the properties in LangChain4j's order."""
    if message is None:
        return None
    return {name: _made(value) for name, value in _values(message).items()}


def _made(value: Any) -> Any:
    if isinstance(value, map):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def strings_of(message: ChatMessage) -> Iterator[tuple[Path, str]]:
    """Yield all strings in the JSON of a message, also the names of properties.

    A path is a chain, as attributes may be deep and their names long: see `path_text`.
    """
    waiting: list[Iterator[tuple[Any, Path]]] = [iter([(_values(message), None)])]
    while waiting:
        for value, path in waiting[-1]:
            if isinstance(value, str):
                yield path, value
            elif isinstance(value, Mapping):
                waiting.append(_of_object(value, path))
                break
            elif isinstance(value, map | list | tuple):
                waiting.append(_of_list(value, path))
                break
        else:
            waiting.pop()


def _of_object(values: Mapping[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for name, value in values.items():
        yield name, (path, " (a name in it)")
        yield value, (path, f".{name}")


def _of_list(values: Iterable[Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for n, value in enumerate(values):
        yield value, (path, f"[{n}]")


def path_text(path: Path) -> str:
    """Return a path as it is in errors, such as `contents[0].text`."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.insert(0, part)
    return "".join(parts).removeprefix(".")


def _values(message: ChatMessage) -> dict[str, Any]:
    """Return JSON values of which the items of lists are made when they are asked for."""
    return {**_fields(message), "type": message.type.value}


def _fields(message: ChatMessage) -> dict[str, Any]:
    match message:
        case SystemMessage():
            return {"text": message.text}
        case UserMessage():
            return _present(
                name=message.name or None,
                contents=map(_content, message.contents),
                attributes=message.attributes or None,
            )
        case AiMessage():
            return _present(
                text=message.text,
                thinking=message.thinking,
                toolExecutionRequests=map(_request, message.tool_execution_requests),
                attributes=message.attributes,
            )
        case ToolExecutionResultMessage():
            return _present(
                id=message.id,
                toolName=message.tool_name,
                contents=map(_content, message.contents),
                isError=message.is_error,
                attributes=message.attributes,
            )
        case CustomMessage():
            return {"attributes": message.attributes}
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
