"""Requests and answers with their headers: to which server a request goes, and which headers are
passed on or stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from .decoding import KNOWN
from .routes import GEMINI, call_of_path, name_of
from .secrets import Secrets, secrets_of

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
CONTENT_LENGTH = b"content-length"
CONVERSATION = b"x-chatmemory-conversation"
# All headers that are kept. A provider's support asks for the ids of requests.
_KEPT = (
    *(b"user-agent", b"anthropic-version", b"anthropic-beta"),
    *(b"x-request-id", b"request-id", b"x-client-request-id"),
)
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"http2-settings"),
}
RESENT = 8 * 2**20  # bytes of a request that can be sent again on another connection
_LOCAL = {"127.0.0.1", "localhost", "::1"}


class Upstream(NamedTuple):
    """A server to which requests are passed on. `path` is put in front of the path of each
    request.
    """

    host: str
    port: int
    is_secure: bool
    path: str = ""

    @classmethod
    def at(cls, url: str) -> Upstream:
        """Return the server at a URL. Raises ValueError for an invalid URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the upstream must be a URL such as https://api.openai.com, but is: {url!r}"
            )
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        return cls(parts.hostname, port, is_secure, parts.path.rstrip("/"))

    @property
    def name(self) -> bytes:
        """The value of the Host header for this server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.is_secure else 80)
        return (host if usual else f"{host}:{self.port}").encode()


ANTHROPIC, OPENAI = Upstream.at("https://api.anthropic.com"), Upstream.at("https://api.openai.com")
GOOGLE = Upstream.at("https://generativelanguage.googleapis.com")


@dataclass(frozen=True, eq=False)
class RequestHead:
    """The method, target and headers of a request. `target` is the path with the query string. The
    properties say how the proxy treats the request.

    The value of the header Content-Length is left out. So requests that differ only in length can
    share one object (see `head_of`), and each property is computed once.
    """

    method: bytes = b""
    target: bytes = b""
    headers: Headers = ()

    def header(self, name: bytes) -> bytes:
        """Return the first value of a header; b"" without such a header. `name` is in lower
        case.
        """
        return self.values.get(name, b"")

    @cached_property
    def values(self) -> Mapping[bytes, bytes]:
        """The first value of each header, by its name in lower case."""
        return values_by_name(self.headers)

    @cached_property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin1")

    @cached_property
    def is_recorded(self) -> bool:
        """Whether this is a model call to record: a POST to a known path, with the content type
        JSON or without a content type.
        """
        kind = self.header(b"content-type").partition(b";")[0].strip().lower()
        is_json = kind in (b"application/json", b"")
        return self.method == b"POST" and is_json and call_of_path(self.path) != ""

    @cached_property
    def passed_name(self) -> str:
        """The name under which a request is counted if it is not recorded. "" for methods other
        than POST, which cannot be model calls.
        """
        return name_of("POST", self.path) if self.method == b"POST" else ""

    @cached_property
    def is_chunked(self) -> bool:
        return self.header(b"transfer-encoding") != b""

    @cached_property
    def awaits_word(self) -> bool:
        """Whether the client waits for a go-ahead (100 Continue) before it sends the body."""
        return self.header(b"expect").lower() == b"100-continue"

    @cached_property
    def secrets(self) -> Secrets:
        return secrets_of(self.headers, self.target)

    @cached_property
    def refusal(self) -> tuple[int, str] | None:
        """The status and the reason with which the proxy rejects the request. None if the request
        is passed on.

        - 403: the Host header does not name this machine, or the Origin header names another host.
          Without this rule, web pages of other sites could use the proxy through the browser.
        - 400: the method is CONNECT, or the target is not a path.
        - 501: the client asks for a WebSocket.
        """
        if not _is_local(self.header(b"host")):
            return 403, (
                "the recorder answers only requests to this machine: use the host 127.0.0.1 or "
                "localhost"
            )
        origin = self.header(b"origin")
        if origin and not _is_local(origin.rpartition(b"://")[2]):
            return 403, "the recorder answers no requests from web pages of other hosts"
        if self.method == b"CONNECT" or not self.target.startswith(b"/"):
            return 400, (
                "the recorder is not a proxy for any URL: request a path, such as "
                "/v1/chat/completions"
            )
        if self.header(b"upgrade").lower() == b"websocket":
            why = (
                "the recorder does not record WebSockets: let the client use HTTP, or connect to "
                "its provider directly"
            )
            return 501, why
        return None

    @cached_property
    def provider(self) -> Upstream:
        """The provider to which the request goes, by its headers and path: Anthropic, Google, or
        else OpenAI. The Host header is ignored.
        """
        if self.header(b"anthropic-version"):
            return ANTHROPIC
        if call_of_path(self.path) == GEMINI or self.path.startswith("/v1beta/"):
            return GOOGLE
        return GOOGLE if self.header(b"x-goog-api-key") else OPENAI


_same_head = lru_cache(maxsize=256)(RequestHead)
_REMEMBERED = 4096  # bytes of headers


def head_of(method: bytes, target: bytes, headers: Headers, size: int = 0) -> RequestHead:
    """Return the head of a request from a cache, so that equal heads are usually the same object.

    `size` is the approximate number of bytes of the headers. If it is 4,096 or more, the head is
    not cached.
    """
    made = _same_head if size < _REMEMBERED else RequestHead
    return made(method, target, headers)


NO_HEAD = RequestHead()


@dataclass(eq=False, slots=True)
class ClientRequest:
    """A client's request while it arrives.

    - `length`: the value of Content-Length, or b"".
    - `pieces`: parts of the body that are not passed on yet.
    - `size`: the number of bytes passed on so far.
    - `kept`: the parts passed on so far, to send a small body again if the provider closed the
      connection. Empty for a large body.
    - `is_whole`: whether the request has arrived completely.
    - `is_old`: whether the request is HTTP/1.0.
    - `keeps_alive`: whether the client's connection stays open after the answer.
    """

    head: RequestHead = NO_HEAD
    length: bytes = b""
    pieces: list[bytes] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    size: int = 0
    is_whole: bool = False
    is_old: bool = False
    keeps_alive: bool = True

    def take(self) -> bytes:
        """Return the part of the body that arrived since the previous `take`. The caller passes the
        part on. Up to `RESENT` bytes of a body are also added to `kept`. For a larger body, `kept`
        is emptied.
        """
        data = b"".join(self.pieces)
        self.pieces.clear()
        self.size += len(data)
        if self.size <= RESENT:
            self.kept.append(data)
        else:
            self.kept.clear()
        return data


@dataclass(eq=False, slots=True)
class Answer:
    """A provider's answer while it arrives. `pieces` are parts of its body that are not passed back
    yet.

    `values` has the first value of each header, by its name in lower case. `has_head` says whether
    the headers have arrived. `is_whole` says whether the whole answer has arrived. `keeps_alive`
    says whether the connection to the provider can be used again.
    """

    status: int = 0
    reason: bytes = b""
    headers: list[Header] = field(default_factory=list)
    values: dict[bytes, bytes] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)
    has_head: bool = False
    is_whole: bool = False
    keeps_alive: bool = True

    def take(self) -> bytes:
        data = b"".join(self.pieces)
        self.pieces.clear()
        return data


def values_by_name(headers: Iterable[Header]) -> dict[bytes, bytes]:
    """Return the first value of each header, by its name in lower case."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found.setdefault(name.lower(), value)
    return found


def kept_headers(values: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return the headers that are stored with a call. `values` has the first value of each header,
    by its name in lower case.
    """
    return {
        name.decode("latin1"): values[name].decode("latin1") for name in _KEPT if name in values
    }


def _is_local(place: bytes) -> bool:
    """Return whether a host such as `localhost:8000` is this machine."""
    host, _, port = place.decode("latin1").rpartition(":")
    name = host if port.isdecimal() else place.decode("latin1")
    return name.strip("[]") in _LOCAL


@lru_cache(maxsize=64)
def passed_head(head: RequestHead, to: Upstream) -> Sequence[bytes]:
    """Return the bytes of the head for the provider `to`, as two parts. The value of Content-Length
    belongs between them.

    For a request without Content-Length, return one part.
    """
    own = {each.strip().lower() for each in head.header(b"connection").split(b",")}
    left_out = {*_HOP_BY_HOP, *(own - {CONTENT_LENGTH}), b"host", b"expect", CONVERSATION}
    first = b"%s %s%s HTTP/1.1" % (head.method, to.path.encode(), head.target)
    parts = [[first, b"Host: " + to.name]]
    for name, value in head.headers:
        small = name.lower()
        if small == CONTENT_LENGTH:
            parts[-1].append(name + b": ")
            parts.append([b""])
        elif small not in left_out:
            known = narrowed(value) if small == b"accept-encoding" else value
            parts[-1].append(b"%s: %s" % (name, known))
    if head.is_chunked:
        parts[-1].append(b"Transfer-Encoding: chunked")
    parts[-1].append(b"\r\n")
    return [*map(b"\r\n".join, parts)]


def narrowed(encodings: bytes) -> bytes:
    """Return the value of an Accept-Encoding header with only the encodings that this proxy can
    decode.
    """
    names = [each.strip() for each in encodings.decode("latin1").split(",")]
    known = [each for each in names if each.partition(";")[0].strip().lower() in KNOWN]
    if any(each.partition(";")[0].strip() == "*" for each in names):
        known.append("gzip")
    return ", ".join(known or ["identity"]).encode("latin1")


def passed_back(answer: Answer) -> list[Header]:
    """Return the headers of a provider's answer that are passed back to the client. Headers that
    concern only the connection to the provider, such as Transfer-Encoding, are left out.
    """
    own = _HOP_BY_HOP
    if named := answer.values.get(b"connection"):
        own = own.union(each.strip().lower() for each in named.split(b","))
    return [each for each in answer.headers if each[0].lower() not in own]
