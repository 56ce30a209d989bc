"""Checks the length of request bodies before they are parsed, and parses JSON strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from chatmemory.conf import configuration
from chatmemory.exceptions import ChatMemoryError, InvalidMessage
from chatmemory.messages.codec import check_names, load_json
from chatmemory.messages.json_values import JsonValue


class LengthRequired(ChatMemoryError):
    """Raised under WSGI for a body that is sent in chunks, without a Content-Length."""


class BodyLimit(NamedTuple):
    """The size limit of a request's body, in bytes.

    - `size`: the limit of the whole body. In a form with an uploaded file, it is the limit of the
      file.
    - `setting`: the name of the setting that has `size`, such as `CHATMEMORY["PUT_BYTES"]`.
    - `beside`: in a form with an uploaded file, the limit of all other fields together; else 0.
    """

    size: int
    setting: str
    beside: int = 0

    @property
    def most(self) -> int:
        return self.size + self.beside

    def __str__(self) -> str:
        return f"{size_in_words(self.size)}, the limit of {self.setting}"


def size_in_words(size: int) -> str:
    """Return a number of bytes in words, such as `2 MB` or `64 kB`."""
    for unit, name in ((2**20, "MB"), (2**10, "kB")):
        if size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def api_limit(method: str | None) -> BodyLimit:
    """Return the size limit of a body that is sent to the API with this method."""
    setting = "PUT_BYTES" if method == "PUT" else "POST_BYTES"
    return BodyLimit(getattr(configuration(), setting), f'CHATMEMORY["{setting}"]')


def check_body(request: HttpRequest, limit: BodyLimit) -> None:
    """Check the length of a body before the body is parsed.

    Raises RequestDataTooBig for a body above `limit`. Under WSGI, raises LengthRequired for a body
    that is sent in chunks, without a length. Under ASGI, a body without a length is measured, and
    CONTENT_LENGTH is set in `request.META`.
    """
    declared = request.META.get("CONTENT_LENGTH", "")
    is_wsgi = "wsgi.input" in request.META
    if not declared and is_wsgi and "HTTP_TRANSFER_ENCODING" in request.META:
        raise LengthRequired(
            "the body has no Content-Length: send it in one piece, with its length"
        )
    if not declared and not is_wsgi:
        declared = request.META["CONTENT_LENGTH"] = str(len(request.body))
    if declared_length(declared) > limit.most:
        raise RequestDataTooBig(f"the body is larger than {limit}")


def declared_length(header: str) -> int:
    """Return the number in a Content-Length header. It is 0 for an empty header, and for text that
    is no number.
    """
    try:
        return int(header or 0)
    except ValueError:
        return 0


class StrictJSONParser(BaseParser):
    """Parses JSON strictly. Raises ParseError for invalid JSON, NaN, huge numbers, deep nesting,
    and an object that has a property twice. Raises UnsupportedMediaType for a compressed body.

    Messages, and objects in lists within lists, are not checked for repeated properties.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        context: Mapping[str, Any] | None = None,  # each key has a type of its own
    ) -> JsonValue:
        meta = context["request"].META if context else {}
        if (encoding := meta.get("HTTP_CONTENT_ENCODING", "identity")) != "identity":
            raise UnsupportedMediaType(
                encoding, f"the body must not be encoded as {encoding!r}: send plain JSON"
            )
        try:
            value = load_json(stream.read().decode())
            check_names(value, besides=("messages", "conversations"))
            return value
        except UnicodeDecodeError as error:
            raise ParseError(
                f"the body is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
        except InvalidMessage as error:
            raise ParseError(str(error)) from error
