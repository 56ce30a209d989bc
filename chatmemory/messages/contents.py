"""The contents of user messages and tool results: texts, images, sounds, videos and files.

URLs are checked by the rules of `java.net.URI.create`, which LangChain4j uses: RFC 2396 and RFC
2732. Like Java, the check accepts non-ASCII characters, except blanks and control characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv6Address
from typing import ClassVar

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.field_checks import check_kind, check_texts
from chatmemory.patterns import declared_pattern


class DetailLevel(StrEnum):
    """The level of detail in which a model should look at an image. The levels are in the order of
    LangChain4j's enum.
    """

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
    """A sound, as a URL or as base64 text in `base64_data` or `binary_data`.

    LangChain4j has both fields. Its `binaryData` is a byte array, which is written to JSON as
    base64 text.
    """

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
    """An image. The constructor also takes the image's URL as `image`."""

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
    """Return a content as text. Contents that are not texts become a mark, such as `[image
    https://…]`; None becomes "".
    """
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


_SHOWN = 200
_BROKEN_ESCAPE = r"%(?![0-9A-Fa-f]{2})"
# Control characters, blanks of any script, and the "unwise" characters of RFC 2396.
_NEVER = r"\x00-\x20\x7f-\xa0\"<>\\^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_NOT_IN = {
    "path": declared_pattern(rf"[{_NEVER}\[\]?#]|{_BROKEN_ESCAPE}"),
    "authority": declared_pattern(rf"[{_NEVER}\[\]]|{_BROKEN_ESCAPE}"),
    "user info": declared_pattern(rf"[{_NEVER}\[\]@]|{_BROKEN_ESCAPE}"),
    "query": declared_pattern(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "fragment": declared_pattern(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "opaque part": declared_pattern(rf"[{_NEVER}#]|{_BROKEN_ESCAPE}"),
    "scheme name": declared_pattern(r"^[^A-Za-z]|[^A-Za-z0-9+.-]"),
}
_PARTS = declared_pattern(r"(?s)(?:([^:/?#]*):)?([^#]*)(?:#(.*))?")
_HIERARCHY = declared_pattern(r"(?s)(//)?((?<=//)[^/?]*)?([^?]*)(?:\?(.*))?")
_BRACKETED_HOST = declared_pattern(r"\A\[([^%\]]*)(?:%[0-9A-Za-z_.~-]+)?\](?::([0-9]{0,9}))?")


def check_uri(text: str) -> None:
    """Raise InvalidMessage for a URL that `java.net.URI.create` refuses.

    The error has Java's text, such as "Illegal character in path at index 2: /a b". Indexes begin
    at 0. Only errors in the authority (`user@host:port`) can have other texts than Java's.
    """
    found = _PARTS.fullmatch(text)
    assert found is not None  # the last part of the pattern matches any rest
    scheme, rest, fragment = found.groups()
    if scheme is not None:
        _check_scheme(text, scheme, rest)
    if scheme is None or rest.startswith("/"):
        _check_hierarchy(text, rest, found.start(2))
    else:
        _check(text, "opaque part", rest, found.start(2))
    if fragment is not None:
        _check(text, "fragment", fragment, found.start(3))


def _check_scheme(text: str, scheme: str, rest: str) -> None:
    if not scheme:
        raise _refusal("Expected scheme name", 0, text)
    _check(text, "scheme name", scheme, 0)
    if not rest:
        raise _refusal("Expected scheme-specific part", len(scheme) + 1, text)


def _check_hierarchy(text: str, rest: str, start: int) -> None:
    found = _HIERARCHY.fullmatch(rest)
    assert found is not None  # the last part of the pattern matches any rest
    slashes, authority, path, query = found.groups()
    if authority:
        _check_authority(text, authority, start + found.start(2))
    elif slashes and start + len(slashes) == len(text):
        raise _refusal("Expected authority", len(text), text)
    _check(text, "path", path, start + found.start(3))
    if query is not None:
        _check(text, "query", query, start + found.start(4))


def _check_authority(text: str, authority: str, start: int) -> None:
    """Check `user@[IPv6]:port`, or any name.

    Java accepts names that cannot be hosts, because RFC 2396 allows registry-based naming.
    """
    user, at, host = authority.rpartition("@")
    if not host.startswith("["):
        _check(text, "authority", authority, start)
        return
    _check(text, "user info", user, start)
    bracketed = _BRACKETED_HOST.fullmatch(host)
    try:
        IPv6Address(bracketed[1] if bracketed else "")
    except AddressValueError as error:
        where = start + len(user) + len(at)
        raise _refusal("Malformed IPv6 address", where, text) from error


def _check(text: str, part: str, value: str, start: int) -> None:
    found = _NOT_IN[part].search(value)
    if found:
        broken = found[0] == "%"
        what = "Malformed escape pair" if broken else f"Illegal character in {part}"
        raise _refusal(what, start + found.start(), text)


def _refusal(what: str, index: int, text: str) -> InvalidMessage:
    return InvalidMessage(f"{what} at index {index}: {text[:_SHOWN]}")
