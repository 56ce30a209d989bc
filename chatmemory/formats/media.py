"""Images, sounds, videos and files that a format names by kind, URL, data and media type."""

from __future__ import annotations

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
    Video,
    VideoContent,
)
from chatmemory.formats.conversion import stand_in

DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}
PDF = "application/pdf"
_DEFAULTS = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": PDF}


def media_content(
    kind: str,
    url: str | None,
    data: str | None,
    mime_type: str | None,
    detail: DetailLevel = DetailLevel.AUTO,
) -> Content:
    """Return media of a kind ("image", "audio", "video" or "file") as content.

    A file is what its type says; a text stands for one that is no PDF, or that is not here.
    """
    head, found, inline = (url or "").partition(";base64,")
    if found and head.startswith("data:"):
        url, data, mime_type = None, inline, mime_type or head[5:]
    if kind == "file" and mime_type and mime_type.partition("/")[0] in _DEFAULTS:
        kind = mime_type.partition("/")[0]
    if not url and not data:
        return stand_in(kind, None)
    match kind:
        case "image":
            return ImageContent(Image(url, data, mime_type), detail)
        case "audio":
            return AudioContent(Audio(url, data, mime_type))
        case "video":
            return VideoContent(Video(url, data, mime_type))
    if mime_type not in (None, PDF):
        return stand_in(kind, url or mime_type)
    return PdfFileContent(PdfFile(url, data, mime_type))


def media_of(content: Content | None) -> tuple[str, Media] | None:
    """Return the kind of a content and its media; None for a text, or for what holds nothing."""
    match content:
        case ImageContent(image=media):
            kind = "image"
        case AudioContent(audio=Media() as media):
            kind = "audio"
        case VideoContent(video=Media() as media):
            kind = "video"
        case PdfFileContent(pdf_file=Media() as media):
            kind = "file"
        case _:
            return None
    return (kind, media) if media.url or data_of(media) else None


def data_of(media: Media) -> str | None:
    """Return the base64 text of media that is given inline."""
    return media.base64_data or getattr(media, "binary_data", None)


def mime_type_of(kind: str, media: Media) -> str:
    """Return the media type of inline media, which providers want to know."""
    return media.mime_type or _DEFAULTS[kind]
