"""The contents of user messages and tool results: texts, images, sounds, videos and files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.field_checks import check_kind, check_texts
from chatmemory.core.uris import check_uri


class DetailLevel(StrEnum):
    """The level of detail in which a model should look at an image, in LangChain4j's order."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    ULTRA_HIGH = "ULTRA_HIGH"
    AUTO = "AUTO"


@dataclass(frozen=True, slots=True)
class Content:
    """One part of a user message or of a tool result."""

    type: ClassVar[str]


@dataclass(frozen=True, slots=True)
class TextContent(Content):
    type: ClassVar[str] = "TEXT"
    text: str

    def __post_init__(self) -> None:
        if self.text is None:
            raise InvalidMessage("text cannot be null")
        check_texts(text=self.text)


@dataclass(frozen=True)
class Media:
    """An image, a sound, a video or a file, as a URL or as inline base64 text."""

    url: str | None = None
    base64_data: str | None = None
    mime_type: str | None = None

    def __post_init__(self) -> None:
        check_texts(**vars(self))
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


@dataclass(frozen=True, init=False)
class ImageContent(Content):
    """An image, which may be given by its URL alone."""

    type: ClassVar[str] = "IMAGE"
    image: Image
    detail_level: DetailLevel = DetailLevel.LOW

    def __init__(self, image: Image | str, detail_level: DetailLevel = DetailLevel.LOW) -> None:
        image = Image(url=image) if isinstance(image, str) else image
        if image is None:
            raise InvalidMessage("image cannot be null")
        if detail_level is None:
            raise InvalidMessage("detailLevel cannot be null")
        check_kind(image=(image, Image), detail_level=(detail_level, DetailLevel))
        object.__setattr__(self, "image", image)
        object.__setattr__(self, "detail_level", detail_level)


@dataclass(frozen=True)
class AudioContent(Content):
    type: ClassVar[str] = "AUDIO"
    audio: Audio | None = None

    def __post_init__(self) -> None:
        check_kind(audio=(self.audio, Audio))


@dataclass(frozen=True)
class VideoContent(Content):
    type: ClassVar[str] = "VIDEO"
    video: Video | None = None

    def __post_init__(self) -> None:
        check_kind(video=(self.video, Video))


@dataclass(frozen=True)
class PdfFileContent(Content):
    type: ClassVar[str] = "PDF"
    pdf_file: PdfFile | None = None

    def __post_init__(self) -> None:
        check_kind(pdf_file=(self.pdf_file, PdfFile))


def content_text(content: Content | None) -> str:
    """Return a text, or a mark such as `[image https://…]`."""
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
