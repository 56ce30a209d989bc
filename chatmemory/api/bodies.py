"""Bodies that are sent in chunks, without a Content-Length."""

from __future__ import annotations

from django.http import HttpRequest

from chatmemory.core.exceptions import ChatMemoryError


class LengthRequired(ChatMemoryError):
    """The server cannot read a body without a Content-Length."""


def read_chunked(request: HttpRequest) -> None:
    """Read a chunked body and set its length, without which Django and REST framework read none.

    Raises LengthRequired under WSGI, where the body cannot be read, and RequestDataTooBig.
    """
    if request.META.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" not in request.META:
        return
    if "wsgi.input" in request.META:
        raise LengthRequired(
            "the body has no Content-Length: send it in one piece, with its length"
        )
    request.META["CONTENT_LENGTH"] = str(len(request.body))
