"""Reads HTTP/1.1 with httptools, the parser of Node.js, and writes HTTP heads and chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import httptools

from .headers import CONTENT_LENGTH, NO_HEAD, Answer, ClientRequest, Header, head_of, values_by_name

LAST_CHUNK = b"0\r\n\r\n"
HEAD_BYTES = 2**18  # of a request or an answer before its body


class Malformed(Exception):
    """Raised for bytes that are not HTTP, or for headers that are too large. `status` is the HTTP
    status of the reply to a malformed request, such as 400.
    """

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class RequestReader:
    """Reads the requests of a client into the queue `requests`. A client can send the next request
    before the previous request is answered.
    """

    def __init__(self) -> None:
        self.requests: deque[ClientRequest] = deque()
        self._newest = ClientRequest()  # the one whose bytes come
        self._parser = httptools.HttpRequestParser(self)
        self._target, self._headers = b"", list[Header]()
        self._head_size = self._named_size = 0

    def feed(self, data: bytes) -> None:
        """Parse bytes from the client. Raises Malformed."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Only the head asks for another protocol; what follows is the next request
            self._parser = httptools.HttpRequestParser(self)
            if rest := data[upgrade.args[0] :]:
                self.feed(rest)
        except httptools.HttpParserError as error:
            raise Malformed(str(error)) from error
        if self._newest.head is NO_HEAD:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES:
                raise Malformed(
                    f"the headers of the request are larger than {HEAD_BYTES:,} bytes", 431
                )

    # What httptools calls

    def on_message_begin(self) -> None:
        self._newest = ClientRequest()
        self.requests.append(self._newest)
        self._target, self._headers = b"", []
        self._head_size = self._named_size = 0

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        request = self._newest
        if request.head is not NO_HEAD:  # a trailer is not passed on
            return
        if len(name) == len(CONTENT_LENGTH) and name.lower() == CONTENT_LENGTH:
            request.length, value = value, b""
        self._headers.append((name, value))
        self._named_size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        request, parser = self._newest, self._parser
        method = parser.get_method()
        request.head = head_of(method, self._target, tuple(self._headers), self._named_size)
        request.is_old = parser.get_http_version() == "1.0"
        request.keeps_alive = parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._newest.pieces.append(data)

    def on_message_complete(self) -> None:
        self._newest.is_whole = True


class AnswerReader:
    """Reads the answers on a connection to a provider. Informational answers, such as 100 Continue,
    are skipped.
    """

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.begin(b"")

    def begin(self, method: bytes) -> None:
        """Prepare to read the answer to a request. `method` is the request's method."""
        self.answer = Answer()
        self._method = method
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Parse bytes from the provider. Raises Malformed."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            raise Malformed("its answer changes to a protocol other than HTTP") from error
        except httptools.HttpParserError as error:
            # Without a body in spite of its length, as for HEAD, the next bytes are none of it
            if not (self.answer.has_head and self._method == b"HEAD"):
                raise Malformed(str(error)) from error
        self._size += len(data)
        if not self.answer.has_head and self._size > HEAD_BYTES:
            raise Malformed(f"the headers of its answer are larger than {HEAD_BYTES:,} bytes")

    def end(self) -> bool:
        """Handle the end of the connection. Return whether the answer is complete."""
        answer = self.answer
        has_size = CONTENT_LENGTH in answer.values or b"transfer-encoding" in answer.values
        if answer.has_head and not has_size:
            answer.is_whole, answer.keeps_alive = True, False
        return answer.is_whole

    @property
    def has_begun(self) -> bool:
        return self._size > 0

    # What httptools calls

    def on_message_begin(self) -> None:
        if self.answer.is_whole:  # more than it was asked for
            self.answer.keeps_alive = False

    def on_status(self, reason: bytes) -> None:
        if not self.answer.has_head:
            self.answer.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.answer.has_head:
            self.answer.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        answer = self.answer
        if answer.has_head:
            return
        if 100 <= status < 200:
            answer.reason = b""
            answer.headers.clear()
            return
        answer.has_head = True
        answer.status = status
        answer.values = values_by_name(answer.headers)
        answer.keeps_alive = self._parser.should_keep_alive()
        if self._method == b"HEAD":
            answer.is_whole = True
            answer.keeps_alive = False  # the parser waits for a body

    def on_body(self, data: bytes) -> None:
        if not self.answer.is_whole:
            self.answer.pieces.append(data)

    def on_message_complete(self) -> None:
        self.answer.is_whole = self.answer.has_head


def head(first: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of an HTTP head. `first` is its first line, without a line end."""
    return b"\r\n".join([first, *(b"%s: %s" % each for each in headers), b"\r\n"])


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
