"""Requests and answers with their headers: the upstream, and the headers to pass on or keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from .decoding import KNOWN
from .routes import GEMINI, call_of_path, name_of

Headers = list[tuple[bytes, bytes]]
CONVERSATION = b"x-chatmemory-conversation"
# All headers that are kept. A provider's support asks for the ids of requests.
_KEPT = {
    *(b"user-agent", b"anthropic-version", b"anthropic-beta"),
    *(b"x-request-id", b"request-id", b"x-client-request-id"),
}
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"http2-settings"),
}
RESENT = 8 * 2**20  # bytes of a request that can be sent again on another connection
_LOCAL = {"127.0.0.1", "localhost", "::1"}


class Upstream(NamedTuple):
    """The server to which requests are passed on. `path` is put before their own path."""

    host: str
    port: int
    is_secure: bool
    path: str = ""

    @classmethod
    def at(cls, url: str) -> Upstream:
        """Return the upstream of a URL. Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"an upstream is a URL such as https://api.openai.com, not {url!r}")
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        return cls(parts.hostname, port, is_secure, parts.path.rstrip("/"))

    @property
    def name(self) -> bytes:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.is_secure else 80)
        return (host if usual else f"{host}:{self.port}").encode()


ANTHROPIC, OPENAI = Upstream.at("https://api.anthropic.com"), Upstream.at("https://api.openai.com")
GOOGLE = Upstream.at("https://generativelanguage.googleapis.com")


def value_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first value of a header, or b"". The name is in small letters."""
    return next((value for each, value in headers if each.lower() == name), b"")


@dataclass(eq=False)
class ClientRequest:
    """A request of a client, with its headers as received.

    `pieces` of its body have not been passed on yet. `kept` pieces can be sent again. `is_old`
    means HTTP/1.0.
    """

    method: bytes = b""
    target: bytes = b""
    headers: Headers = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    size: int = 0
    has_head: bool = False
    is_whole: bool = False
    is_old: bool = False
    keeps_alive: bool = True

    def header(self, name: bytes) -> bytes:
        return value_of(self.headers, name)

    @property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin1")

    @property
    def is_recorded(self) -> bool:
        """Whether this is a call of a model. Multipart forms and other bodies are not recorded."""
        kind = self.header(b"content-type").partition(b";")[0].strip().lower()
        is_json = kind in (b"application/json", b"")
        return self.method == b"POST" and is_json and call_of_path(self.path) != ""

    @property
    def passed_name(self) -> str:
        """The name under which an unrecorded request is counted; "" for requests that only read,
        which are no model calls.
        """
        return name_of("POST", self.path) if self.method == b"POST" else ""

    def take(self) -> bytes:
        """Return the part of the body received since the last call.

        The part is kept while the body is small, to be sent again if a connection was closed
        meanwhile.
        """
        data = b"".join(self.pieces)
        self.pieces.clear()
        self.size += len(data)
        if self.size <= RESENT:
            self.kept.append(data)
        else:
            self.kept.clear()
        return data


@dataclass(eq=False)
class Answer:
    """An answer of an upstream. `pieces` of its body have not been passed back."""

    status: int = 0
    reason: bytes = b""
    headers: Headers = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    has_head: bool = False
    is_whole: bool = False
    keeps_alive: bool = True

    def has(self, name: bytes) -> bool:
        return any(each.lower() == name for each, _ in self.headers)

    def take(self) -> bytes:
        data = b"".join(self.pieces)
        self.pieces.clear()
        return data


def upstream_of(request: ClientRequest) -> Upstream:
    """Return the provider of a request. The client's choice of a host is ignored."""
    if request.header(b"anthropic-version"):
        return ANTHROPIC
    path = request.path
    if call_of_path(path) == GEMINI or path.startswith("/v1beta/"):
        return GOOGLE
    return GOOGLE if request.header(b"x-goog-api-key") else OPENAI


def kept_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.lower().decode("latin1"): value.decode("latin1")
        for name, value in headers
        if name.lower() in _KEPT
    }


def refusal(request: ClientRequest) -> tuple[int, str] | None:
    """Return the status and the reason if a request is refused, or None.

    Requests of pages of other sites are refused, although a browser sends them from this machine.
    """
    if not _is_local(request.header(b"host")):
        return 403, "only requests to this machine are answered: use 127.0.0.1 or localhost"
    origin = request.header(b"origin")
    if origin and not _is_local(origin.rpartition(b"://")[2]):
        return 403, "only pages of this machine are answered"
    if request.method == b"CONNECT" or not request.target.startswith(b"/"):
        return 400, "the recorder is no proxy of a client's choice: ask for a path"
    if request.header(b"upgrade").lower() == b"websocket":
        why = "WebSockets are not recorded: let the client use HTTP, or its provider directly"
        return 501, why
    return None


def _is_local(place: bytes) -> bool:
    """Return whether a host, with or without a port, is this machine."""
    host, _, port = place.decode("latin1").rpartition(":")
    name = host if port.isdecimal() else place.decode("latin1")
    return name.strip("[]") in _LOCAL


def passed(request: ClientRequest, to: Upstream) -> Headers:
    """Return the headers that are passed on with a request."""
    named = request.header(b"connection")
    own = {each.strip().lower() for each in named.split(b",")} - {b"content-length"}
    left_out = {*_HOP_BY_HOP, *own, b"host", b"expect", CONVERSATION}
    found = [(b"Host", to.name)]
    for name, value in request.headers:
        small = name.lower()
        if small == b"accept-encoding":
            found.append((name, narrowed(value)))
        elif small not in left_out:
            found.append((name, value))
    if request.header(b"transfer-encoding"):
        found.append((b"Transfer-Encoding", b"chunked"))
    return found


def narrowed(encodings: bytes) -> bytes:
    """Return an Accept-Encoding without encodings that cannot be decoded here."""
    names = [each.strip() for each in encodings.decode("latin1").split(",")]
    known = [each for each in names if each.partition(";")[0].strip().lower() in KNOWN]
    if any(each.partition(";")[0].strip() == "*" for each in names):
        known.append("gzip")
    return ", ".join(known or ["identity"]).encode("latin1")


def passed_back(answer: Answer) -> Headers:
    """Return the headers of an answer that are passed back."""
    named = value_of(answer.headers, b"connection")
    own = {each.strip().lower() for each in named.split(b",")} | _HOP_BY_HOP
    return [(name, value) for name, value in answer.headers if name.lower() not in own]
