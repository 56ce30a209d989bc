"""Sends long responses in chunks while they are made, so that the server never has a whole long
response in RAM.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware, re_accepts_gzip
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_sequence

CHUNK = 2**16  # characters


def streamed(request: HttpRequest, texts: Iterable[str], content_type: str) -> HttpResponseBase:
    """Return a response with these texts. A short response is sent as a whole, and a long one in
    chunks.

    A long response is compressed here if the client accepts gzip, so that Django's GZipMiddleware
    leaves it unchanged. Under ASGI, many clients cannot read chunks that the middleware has
    compressed.

    An error in the first two chunks is raised. A later error ends the connection, so that the
    client notices that the response is incomplete.
    """
    chunks = _chunks(texts)
    first, second = next(chunks, ""), next(chunks, None)
    if second is None:
        return HttpResponse(first, content_type)
    content: Iterator[bytes] = map(str.encode, chain((first, second), chunks))
    is_packed = re_accepts_gzip.search(request.headers.get("Accept-Encoding", "")) is not None
    if is_packed:  # random padding, against BREACH
        content = compress_sequence(content, max_random_bytes=GZipMiddleware.max_random_bytes)
    is_async = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _in_threads(content) if is_async else content, content_type=content_type
    )
    patch_vary_headers(response, ["Accept-Encoding"])
    if is_packed:
        response["Content-Encoding"] = "gzip"
    return response


def json_list(values: Iterable[object], separator: str = ",") -> Iterator[str]:
    """Yield the text of a JSON list in parts, one for each value. `separator` is the text between
    two values.
    """
    before = "["
    for value in values:
        yield before + json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        before = separator
    yield "[]" if before == "[" else "]"


def _chunks(texts: Iterable[str]) -> Iterator[str]:
    """Yield longer texts, made from several short texts, because each chunk has a cost of its
    own.
    """
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= CHUNK:
            yield "".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield "".join(chunk)


async def _in_threads(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks, each made in the request's thread. A slow client holds no database
    connection.
    """
    while (chunk := await sync_to_async(_next)(chunks)) is not None:
        yield chunk


def _next(chunks: Iterator[bytes]) -> bytes | None:
    try:
        return next(chunks, None)
    finally:
        close_old_connections()
