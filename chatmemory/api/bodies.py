"""How large a body may be, and the check of it before it is read."""

from __future__ import annotations

from typing import NamedTuple

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest

from chatmemory.conf import configuration
from chatmemory.core.exceptions import ChatMemoryError

URL_ENCODED = "application/x-www-form-urlencoded"
URL_ENCODED_MAX = 64 * 2**10


class LengthRequired(ChatMemoryError):
    """The server cannot read a body without a Content-Length."""


class BodyLimit(NamedTuple):
    """The size in bytes that the `rule` allows, such as a setting, and what may come beside it."""

    size: int
    rule: str
    beside: int = 0

    @property
    def most(self) -> int:
        return self.size + self.beside

    @property
    def refusal(self) -> str:
        """What is told to whoever sends more."""
        return f"the body is larger than {size_in_words(self.size)}, the limit of {self.rule}"


def size_in_words(size: int) -> str:
    """Return a number of bytes, such as `2 MB` or `64 kB`."""
    for unit, name in ((2**20, "MB"), (2**10, "kB")):
        if size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def api_limit(method: str | None, content_type: str) -> BodyLimit:
    """Return the limit of a body that is sent to the API.

    No route takes a form, but the CSRF check of a session parses one, which takes up to 90 times
    its size in memory.
    """
    if content_type == URL_ENCODED:
        return BodyLimit(URL_ENCODED_MAX, "forms: send JSON")
    setting = "PUT_BYTES" if method == "PUT" else "POST_BYTES"
    return BodyLimit(getattr(configuration(), setting), f'CHATMEMORY["{setting}"]')


def check_body(request: HttpRequest, limit: BodyLimit) -> None:
    """Check the length of a body before it is read, and tell the length of a chunked one, without
    which Django and REST framework read none.

    Raises RequestDataTooBig, and LengthRequired under WSGI, where a chunked body cannot be read.
    Django has received it under ASGI, and raises RequestDataTooBig for more than
    DATA_UPLOAD_MAX_MEMORY_SIZE.
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
        raise RequestDataTooBig(limit.refusal)


def declared_length(header: str) -> int:
    """Return the number in a Content-Length; 0 for none, as Django reads it."""
    return int(header[:18]) if header.isascii() and header.isdigit() else 0
