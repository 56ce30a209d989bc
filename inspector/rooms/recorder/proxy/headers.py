"""Requests and their headers: the upstream, and the headers to pass on, keep or hide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import h11

CONVERSATION = b"x-chatmemory-conversation"
# All headers that are kept. A provider's support asks for the ids of requests.
_KEPT = {
    *(b"user-agent", b"anthropic-version", b"anthropic-beta"),
    *(b"x-request-id", b"request-id", b"x-client-request-id"),
}
_SECRET = {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"cookie", b"set-cookie"}
_SHORTEST_SECRET = 6
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"),
}
RESENT = 8 * 2**20  # bytes of a request that can be sent again on another connection
_RECORDED = re.compile(r"(.*/v\d+)?/(chat/completions|responses|messages)")
_LOCAL = {"127.0.0.1", "localhost", "::1"}
_PACKINGS = {"gzip", "deflate", "identity"}


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


@dataclass
class ClientRequest:
    """A request of a client, with its headers as they came."""

    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: list[bytes] = field(default_factory=list)
    size: int = 0
    is_whole: bool = False

    def header(self, name: bytes) -> bytes:
        return next((value for each, value in self.headers if each.lower() == name), b"")

    @property
    def is_recorded(self) -> bool:
        """Whether this is a call of a model. Multipart forms and other bodies are not recorded."""
        path = self.target.partition(b"?")[0].decode("latin1").rstrip("/")
        kind = self.header(b"content-type").partition(b";")[0].strip().lower()
        is_json = kind in (b"application/json", b"")
        return self.method == b"POST" and is_json and _RECORDED.fullmatch(path) is not None

    def keep(self, data: bytes) -> None:
        """Keep a piece of the body, to send it again if a connection was closed meanwhile."""
        self.size += len(data)
        self.body = [*self.body, data] if self.size <= RESENT else []


def kept_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.lower().decode("latin1"): value.decode("latin1")[:500]
        for name, value in headers
        if name.lower() in _KEPT
    }


def secrets_in(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the values of secret headers and their parts. They must not be stored."""
    values = [value for name, value in headers if name.lower() in _SECRET]
    parts = {part for value in values for part in (value, *value.split(), *value.split(b"="))}
    return sorted((p for p in parts if len(p) >= _SHORTEST_SECRET), key=len, reverse=True)


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


def passed(request: ClientRequest, to: Upstream) -> list[tuple[bytes, bytes]]:
    """Return the headers that are passed on with a request."""
    own = {each.strip().lower() for each in request.header(b"connection").split(b",")}
    left_out = {
        *_HOP_BY_HOP,
        *own - {b"content-length"},
        b"host",
        b"expect",
        b"accept-encoding",
        CONVERSATION,
    }
    found = [(b"Host", to.name)]
    found += [(name, value) for name, value in request.headers if name.lower() not in left_out]
    if packings := request.header(b"accept-encoding"):
        found.append((b"Accept-Encoding", narrowed(packings)))
    if request.header(b"transfer-encoding"):  # then no other length may be sent
        found = [(name, value) for name, value in found if name.lower() != b"content-length"]
        found.append((b"Transfer-Encoding", b"chunked"))
    return found


def narrowed(packings: bytes) -> bytes:
    """Return an Accept-Encoding without encodings that cannot be read here."""
    names = [each.strip() for each in packings.decode("latin1").split(",")]
    known = [each for each in names if each.partition(";")[0].strip().lower() in _PACKINGS]
    if any(each.partition(";")[0].strip() == "*" for each in names):
        known.append("gzip")
    return ", ".join(known or ["identity"]).encode("latin1")


def passed_back(event: Any, is_last: bool = False) -> Any:
    """Return an event of the answer for the client, or None if it is not passed on. If the answer
    `is_last`, a header says that the connection ends after it.
    """
    if isinstance(event, h11.InformationalResponse):
        return None
    if not isinstance(event, h11.Response):
        return event
    raw = list(event.headers.raw_items())
    named = next((value for name, value in raw if name.lower() == b"connection"), b"")
    own = {each.strip().lower() for each in named.split(b",")}
    headers = [(name, value) for name, value in raw if name.lower() not in _HOP_BY_HOP | own]
    headers += [(b"Connection", b"close")] if is_last else []
    return h11.Response(status_code=event.status_code, reason=event.reason, headers=headers)
