"""The messages of a conversation: LangChain4j's five kinds, as immutable values.

Names, validation and error words follow LangChain4j (`dev.langchain4j.data.message`), so that a
message means the same on both sides of the wire. Equality is by value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.uris import check_uri


class MessageType(StrEnum):
    SYSTEM = "SYSTEM"
    USER = "USER"
    AI = "AI"
    TOOL_EXECUTION_RESULT = "TOOL_EXECUTION_RESULT"
    CUSTOM = "CUSTOM"


class DetailLevel(StrEnum):
    """The level of detail in which a model should look at an image, in LangChain4j's order."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    ULTRA_HIGH = "ULTRA_HIGH"
    AUTO = "AUTO"


# Contents of user messages and tool results


@dataclass(frozen=True)
class Content:
    """One part of a user message or of a tool result."""

    type: ClassVar[str]


@dataclass(frozen=True)
class TextContent(Content):
    type: ClassVar[str] = "TEXT"
    text: str

    def __post_init__(self) -> None:
        if self.text is None:
            raise InvalidMessage("text cannot be null")


@dataclass(frozen=True)
class Media:
    """An image, a sound, a video or a file, as a URL or as inline base64 text."""

    url: str | None = None
    base64_data: str | None = None
    mime_type: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None:
            check_uri(self.url)


@dataclass(frozen=True)
class Image(Media):
    revised_prompt: str | None = None


@dataclass(frozen=True)
class Audio(Media):
    """A sound. `binary_data` is base64 text too, as LangChain4j writes its byte array."""

    binary_data: str | None = None


@dataclass(frozen=True)
class Video(Media):
    pass


@dataclass(frozen=True)
class PdfFile(Media):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mime_type is None:
            object.__setattr__(self, "mime_type", "application/pdf")


@dataclass(frozen=True)
class ImageContent(Content):
    type: ClassVar[str] = "IMAGE"
    image: Image
    detail_level: DetailLevel = DetailLevel.LOW

    def __post_init__(self) -> None:
        if isinstance(self.image, str):
            object.__setattr__(self, "image", Image(url=self.image))
        if self.image is None:
            raise InvalidMessage("image cannot be null")
        if self.detail_level is None:
            raise InvalidMessage("detailLevel cannot be null")


@dataclass(frozen=True)
class AudioContent(Content):
    type: ClassVar[str] = "AUDIO"
    audio: Audio | None = None


@dataclass(frozen=True)
class VideoContent(Content):
    type: ClassVar[str] = "VIDEO"
    video: Video | None = None


@dataclass(frozen=True)
class PdfFileContent(Content):
    type: ClassVar[str] = "PDF"
    pdf_file: PdfFile | None = None


# Messages


@dataclass(frozen=True)
class ChatMessage:
    """Base of the five kinds; `type` is the kind's name in JSON and in the database."""

    type: ClassVar[MessageType]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the tokens that `count_tokens` remembers out of copies and pickles."""
        return {name: value for name, value in self.__dict__.items() if name != "_tokens"}

    @property
    def has_tool_execution_requests(self) -> bool:
        return False


@dataclass(frozen=True)
class SystemMessage(ChatMessage):
    type: ClassVar[MessageType] = MessageType.SYSTEM
    text: str

    def __post_init__(self) -> None:
        if self.text is None or all(character <= " " for character in self.text):
            raise InvalidMessage("text cannot be null or blank")


@dataclass(frozen=True, init=False)
class UserMessage(ChatMessage):
    """A message of the user: a string, or contents.

    Contents may hold None, which LangChain4j reads and writes as null.
    """

    type: ClassVar[MessageType] = MessageType.USER
    contents: tuple[Content | None, ...]
    name: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        contents: str | Iterable[Content | None],
        name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        _set(self, contents=_contents(contents, "contents cannot be null or empty"))
        _set(self, name=name, attributes=dict(attributes or {}))


@dataclass(frozen=True)
class ToolExecutionRequest:
    """A tool call of the model; `arguments` is the JSON text exactly as the model wrote it."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True)
class AiMessage(ChatMessage):
    type: ClassVar[MessageType] = MessageType.AI
    text: str | None = None
    tool_execution_requests: tuple[ToolExecutionRequest | None, ...] = ()
    thinking: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _set(
            self,
            tool_execution_requests=tuple(self.tool_execution_requests or ()),
            attributes=dict(self.attributes or {}),
        )

    @property
    def has_tool_execution_requests(self) -> bool:
        return bool(self.tool_execution_requests)


@dataclass(frozen=True, init=False)
class ToolExecutionResultMessage(ChatMessage):
    """The answer of a tool: a string, or contents; `id` is the id of the request it answers."""

    type: ClassVar[MessageType] = MessageType.TOOL_EXECUTION_RESULT
    id: str | None
    tool_name: str | None
    contents: tuple[Content | None, ...]
    is_error: bool | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        id: str | None,
        tool_name: str | None,
        contents: str | Iterable[Content | None],
        is_error: bool | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        _set(self, id=id, tool_name=tool_name, is_error=is_error)
        _set(self, contents=_contents(contents, "Either text or contents must be provided"))
        _set(self, attributes=dict(attributes or {}))


@dataclass(frozen=True)
class CustomMessage(ChatMessage):
    """A message of a kind that only its provider knows; windows treat it like any other."""

    type: ClassVar[MessageType] = MessageType.CUSTOM
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _set(self, attributes=dict(self.attributes or {}))


def _set(message: ChatMessage, **values: object) -> None:
    """Set fields of a frozen message during its construction."""
    for name, value in values.items():
        object.__setattr__(message, name, value)


def _contents(
    given: str | Iterable[Content | None] | None, if_missing: str
) -> tuple[Content | None, ...]:
    if given is None:
        raise InvalidMessage("text cannot be null")
    contents = (TextContent(given),) if isinstance(given, str) else tuple(given)
    if not contents:
        raise InvalidMessage(if_missing)
    return contents


# The text of a message


def text_of(message: ChatMessage) -> str:
    """Return the text of a message for search and display.

    Tool calls follow the text as `name(arguments)`. Media become `[image https://…]`, and a custom
    message becomes its attributes as JSON. The database stores this text beside the message, and
    `verify_memories` compares the two.
    """
    match message:
        case SystemMessage():
            return message.text
        case UserMessage() | ToolExecutionResultMessage():
            return "\n".join(_content_text(content) for content in message.contents)
        case AiMessage():
            calls = [
                f"{request.name or ''}({request.arguments or ''})"
                for request in message.tool_execution_requests
                if request is not None
            ]
            return "\n".join([message.text or "", *calls] if message.text else calls)
        case CustomMessage():
            return json.dumps(dict(message.attributes), ensure_ascii=False, separators=(",", ":"))
    return ""


def _content_text(content: Content | None) -> str:
    match content:
        case TextContent():
            return content.text
        case ImageContent():
            return _media_text("image", content.image)
        case AudioContent():
            return _media_text("audio", content.audio)
        case VideoContent():
            return _media_text("video", content.video)
        case PdfFileContent():
            return _media_text("pdf", content.pdf_file)
    return ""


def _media_text(kind: str, media: Media | None) -> str:
    url = media.url if media else None
    return f"[{kind} {url}]" if url and not url.startswith("data:") else f"[{kind}]"
