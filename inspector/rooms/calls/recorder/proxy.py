"""The proxy of the recorder. It passes each request on to its provider as it is, and the answer
back chunk by chunk. What it sees of a call is written into a file of the spool before that.

It is started by its path and imports nothing of Django, so that it is back soon after a crash. Each
connection of a client has connections upstream of its own, with the same life.

A file of the spool has frames: a letter, the length in four bytes, and the content.

    H  the request without its body, as JSON          Q  a piece of its body
    A  the status and some headers of the answer      B  a piece of its body, unpacked
    E  how it ended, as JSON: {"how": "ended", "duration": 1.25}
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import logging
import os
import re
import signal
import socket
import ssl
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import h11

logger = logging.getLogger("chatmemory.recorder")

RECORDED = re.compile(r"(.*/v\d+)?/(chat/completions|responses|messages)")
CONVERSATION = b"x-chatmemory-conversation"
# All headers that are kept; ids of a request are what a provider's support asks for
KEPT = {
    *(b"user-agent", b"anthropic-version", b"anthropic-beta"),
    *(b"x-request-id", b"request-id", b"x-client-request-id"),
}
SECRET = {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"cookie", b"set-cookie"}
SHORTEST_SECRET = 6
REMOVED = b"[removed]"
_HOP_BY_HOP = {
    *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te"),
    *(b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"),
}
_LOCAL = {"127.0.0.1", "localhost", "::1"}
_PACKINGS = {"gzip", "deflate", "identity"}
COPIED = 32 * 2**20  # bytes of a request, and of an answer; more is passed on and not recorded
RESENT = 8 * 2**20  # bytes of a request that can be sent again on another connection
READ = 2**16
HEADERS = 2**20
CONNECT_SECONDS = 30
ORPHANED_SECONDS = 30  # in which a proxy goes on whose parent was killed, until there is another
IDLE_SECONDS = 10  # in which a client may still send a request on its open connection
STOPPING_SECONDS = 30


class Upstream(NamedTuple):
    """Where requests are passed on to: `path` stands before theirs."""

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
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.is_secure else 80)
        return (host if usual else f"{host}:{self.port}").encode()


ANTHROPIC, OPENAI = Upstream.at("https://api.anthropic.com"), Upstream.at("https://api.openai.com")


# The spool


class Secrets:
    """Replaces the values of secret headers in a stream of bytes, where they are echoed."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets, self._kept = secrets, b""

    def clean(self, data: bytes, is_last: bool = False) -> bytes:
        """Return bytes without secrets. The beginning of one is kept back until more is known."""
        data = self._kept + data
        for secret in self._secrets:
            data = data.replace(secret, REMOVED)
        held = 0 if is_last else max((_begun(data, each) for each in self._secrets), default=0)
        end = len(data) - held
        self._kept = data[end:]
        return data[:end]


def _begun(data: bytes, secret: bytes) -> int:
    """Return how many bytes at the end of the data are the beginning of a secret."""
    longest = min(len(data), len(secret) - 1)
    return next((n for n in range(longest, 0, -1) if data.endswith(secret[:n])), 0)


def secrets_in(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """Return what must not be stored: values of secret headers, and their parts."""
    values = [value for name, value in headers if name.lower() in SECRET]
    parts = {part for value in values for part in (value, *value.split(), *value.split(b"="))}
    return sorted((p for p in parts if len(p) >= SHORTEST_SECRET), key=len, reverse=True)


class Recording:
    """The file of one call. If it cannot be written, the call goes on without it."""

    def __init__(self, folder: Path, head: dict[str, Any], secrets: Sequence[bytes]) -> None:
        self._began = time.monotonic()
        self._sizes = dict.fromkeys("QB", 0)
        self._cleaners = {kind: Secrets(secrets) for kind in "QB"}
        self._unpack: Callable[[bytes], bytes] = bytes
        self._file: int | None = None
        self.is_ended = False
        self._path = folder / f"{time.time_ns()}-{os.getpid()}-{next(_numbers)}.part"
        with self._trying():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until this process ends, or the call
        self._frame("H", json.dumps(head).encode())

    def request(self, data: bytes) -> None:
        self._piece("Q", data)

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        found = {name.lower(): value for name, value in headers}
        self._unpack = _unpacker(found.get(b"content-encoding", b"").decode("latin1").lower())
        self._frame("A", json.dumps({"status": status, "headers": kept_headers(headers)}).encode())

    def piece(self, data: bytes) -> None:
        with suppress(zlib.error):
            self._piece("B", self._unpack(data))

    def end(self, how: str, error: str = "") -> None:
        """Close the file. It is complete from then on."""
        if self.is_ended:
            return
        self.is_ended = True
        for kind, cleaner in self._cleaners.items():
            self._frame(kind, cleaner.clean(b"", is_last=True))
        told = {
            "how": how,
            "error": error,
            "duration": time.monotonic() - self._began,
            "is_cut": max(self._sizes.values()) > COPIED,
        }
        self._frame("E", json.dumps(told).encode())
        if self._file is not None:
            with self._trying():
                os.rename(self._path, self._path.with_suffix(".call"))
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _piece(self, kind: str, data: bytes) -> None:
        self._sizes[kind] += len(data)
        if data and self._sizes[kind] <= COPIED:
            self._frame(kind, self._cleaners[kind].clean(data))

    def _frame(self, kind: str, data: bytes) -> None:
        if self._file is None or (kind in "QB" and not data):
            return
        with self._trying():
            whole = kind.encode() + struct.pack(">I", len(data)) + data
            if os.write(self._file, whole) != len(whole):
                raise OSError("a part was written")

    def _trying(self) -> _Trying:
        return _Trying(self)

    def give_up(self, error: OSError) -> None:
        """Go on without the file."""
        logger.warning("a call is not recorded: %s", error.strerror or error)
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            with suppress(OSError):
                os.unlink(self._path)
        self._file = None


class _Trying:
    """A block after whose OSError a call goes on without its file."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if isinstance(error, OSError):
            self._recording.give_up(error)
            return True
        return False


_numbers = iter(range(2**62))


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    """Return what unpacks an answer piece by piece, of which no piece may become too large."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return bytes
    unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)
    return lambda data: unpacker.decompress(data, COPIED + 1)


def kept_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {
        name.lower().decode("latin1"): value.decode("latin1")[:500]
        for name, value in headers
        if name.lower() in KEPT
    }


# HTTP


@dataclass
class Asked:
    """A request of a client: its headers as they came."""

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
        """Whether this is a call of a model. Multipart forms and other bodies are none."""
        path = self.target.partition(b"?")[0].decode("latin1").rstrip("/")
        kind = self.header(b"content-type").partition(b";")[0].strip().lower()
        is_json = kind in (b"application/json", b"")
        return self.method == b"POST" and is_json and RECORDED.fullmatch(path) is not None

    def keep(self, data: bytes) -> None:
        """Keep a piece of the body, to send it again if a connection was closed meanwhile."""
        self.size += len(data)
        self.body = [*self.body, data] if self.size <= RESENT else []


class _Gone(Exception):
    """The client has left."""


class _Broken(Exception):
    """The upstream has closed the connection. It `is_stale` if it was open before the request, and
    nothing has come of the answer.
    """

    def __init__(self, why: str, is_stale: bool = False) -> None:
        super().__init__(why)
        self.is_stale = is_stale


class _Connection:
    """A connection to an upstream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADERS)
        self.is_used = False

    @property
    def is_open(self) -> bool:
        return not self.writer.transport.is_closing() and not self.reader.at_eof()

    def abort(self) -> None:
        self.writer.transport.abort()


class Session:
    """The connection of a client, and its connections upstream."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy, self._reader, self._writer = proxy, reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADERS)
        self._upstream: dict[Upstream, _Connection] = {}
        self.is_busy = False

    def abort(self) -> None:
        self._writer.transport.abort()

    async def serve(self) -> None:
        """Answer the requests of a client until it leaves."""
        try:
            while True:
                event = await self._next()
                if not isinstance(event, h11.Request):
                    break
                self.is_busy = True
                await self._answer(event)
                self.is_busy = False
                if self._proxy.is_stopping or self._http.our_state is not h11.DONE:
                    break
                if self._http.their_state is not h11.DONE:
                    break
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            with suppress(h11.LocalProtocolError, ConnectionError):
                await self._refuse(error.error_status_hint, str(error))
        except (_Gone, ConnectionError, TimeoutError):
            pass
        finally:
            for each in self._upstream.values():
                each.abort()
            with suppress(OSError):
                self._writer.close()

    async def _next(self) -> Any:
        """Return what the client sends next. Raises _Gone."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._http.send(go_on) or b"")
            data = await self._reader.read(READ)
            if not data and self._http.their_state is h11.SEND_BODY:
                raise _Gone
            self._http.receive_data(data)
        return event

    async def _answer(self, request: h11.Request) -> None:
        asked = Asked(request.method, request.target, list(request.headers.raw_items()))
        if why := self._refusal(asked):
            await self._refuse(*why)
            return
        to = self._proxy.upstream_of(asked)
        recording = self._recording(asked, to) if asked.is_recorded else None
        try:
            await self._pass_on(asked, to, recording)
        except _Broken as error:
            await self._read_rest(asked, recording)
            if recording:
                recording.end("failed", str(error))
            if self._http.our_state is not h11.SEND_RESPONSE:
                raise _Gone from error  # the answer is cut: so is the client's
            await self._refuse(502, f"the provider cannot be reached: {error}")
        except (_Gone, ConnectionError):
            if recording:
                recording.end("cancelled", "the client left before the answer was complete")
            raise _Gone from None
        finally:
            if recording:
                recording.end("cut", "the recorder was stopped")

    def _refusal(self, asked: Asked) -> tuple[int, str] | None:
        """Return why a request is not passed on; None if it is."""
        host = asked.header(b"host").decode("latin1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if name.strip("[]") not in _LOCAL:
            return 403, "only requests to this machine are answered: use 127.0.0.1 or localhost"
        if asked.header(b"upgrade").lower() == b"websocket":
            why = "WebSockets are not recorded: let the client use HTTP, or its provider directly"
            return 501, why
        return None

    def _recording(self, asked: Asked, to: Upstream) -> Recording:
        head = {
            "at": time.time(),
            "path": asked.target.partition(b"?")[0].decode("latin1"),
            "provider": to.host,
            "conversation": asked.header(CONVERSATION).decode("utf-8", "replace")[:1000],
            "headers": kept_headers(asked.headers),
        }
        return Recording(self._proxy.spool, head, secrets_in(asked.headers))

    async def _refuse(self, status: int, why: str) -> None:
        """Answer a request that is not passed on, and end the connection."""
        body = json.dumps({"error": {"type": "recorder_error", "message": why}}).encode()
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        response = h11.Response(status_code=status, headers=headers)
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    # A request is passed on

    async def _pass_on(self, asked: Asked, to: Upstream, recording: Recording | None) -> None:
        """Pass a request on, and its answer back; once more if the connection was stale."""
        connection = await self._connected(to)
        try:
            await self._exchange(connection, asked, to, recording)
        except _Broken as broken:
            connection.abort()
            can_be_sent = asked.is_whole and asked.size <= RESENT
            if not broken.is_stale or not can_be_sent:
                raise
            connection = await self._connected(to)
            await self._exchange(connection, asked, to, recording)

    async def _connected(self, to: Upstream) -> _Connection:
        """Return a connection to an upstream, the one of before if it is still open."""
        known = self._upstream.get(to)
        if known and known.is_open and known.http.our_state is h11.DONE:
            with suppress(h11.LocalProtocolError):
                known.http.start_next_cycle()
                known.is_used = True
                return known
        if known:
            known.abort()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = await asyncio.open_connection(
                    to.host, to.port, ssl=self._proxy.tls if to.is_secure else None, limit=READ
                )
        except (OSError, TimeoutError) as error:
            raise _Broken(str(error) or type(error).__name__) from error
        self._upstream[to] = _Connection(*found)
        return self._upstream[to]

    async def _exchange(
        self, connection: _Connection, asked: Asked, to: Upstream, recording: Recording | None
    ) -> None:
        head = h11.Request(
            method=asked.method, target=to.path.encode() + asked.target, headers=passed(asked, to)
        )
        try:
            connection.writer.write(connection.http.send(head) or b"")
            await self._send_body(connection, asked, recording)
        except (ConnectionError, OSError):
            pass  # it may have answered before
        leaving = asyncio.create_task(self._left())
        answering = asyncio.create_task(self._pass_back(connection, asked, recording))
        try:
            await asyncio.wait({leaving, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                connection.abort()
                raise _Gone
            await answering
        finally:
            for task in (leaving, answering):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task

    async def _send_body(
        self, connection: _Connection, asked: Asked, recording: Recording | None
    ) -> None:
        for data in asked.body if asked.is_whole else ():
            connection.writer.write(connection.http.send(h11.Data(data=data)) or b"")
        while not asked.is_whole:
            event = await self._next()
            if isinstance(event, h11.EndOfMessage):
                asked.is_whole = True
            elif isinstance(event, h11.Data):
                data = bytes(event.data)
                asked.keep(data)
                if recording:
                    recording.request(data)
                connection.writer.write(connection.http.send(h11.Data(data=data)) or b"")
                await connection.writer.drain()
            else:
                raise _Gone
        connection.writer.write(connection.http.send(h11.EndOfMessage()) or b"")
        await connection.writer.drain()

    async def _read_rest(self, asked: Asked, recording: Recording | None) -> None:
        """Read what comes of a body that is not passed on, so that it is recorded."""
        while not asked.is_whole and isinstance(event := await self._next(), h11.Data):
            if recording:
                recording.request(bytes(event.data))
        asked.is_whole = True

    async def _left(self) -> None:
        """Return when the client has left. What it sends meanwhile is its next request."""
        while data := await self._reader.read(READ):
            self._http.receive_data(data)
        self._reader.feed_eof()

    async def _pass_back(
        self, connection: _Connection, asked: Asked, recording: Recording | None
    ) -> None:
        """Pass an answer back. What came at once is recorded before any of it is passed on."""
        has_begun = is_complete = False
        while not is_complete:
            events = []
            while (event := self._of(connection)) is not h11.NEED_DATA:
                events.append(event)
                if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    break
            for event in events:
                is_complete = is_complete or isinstance(event, h11.EndOfMessage)
                _record(recording, event)
            if any(isinstance(event, h11.ConnectionClosed) for event in events):
                raise _Broken("it has closed the connection", connection.is_used and not has_begun)
            for event in events:
                has_begun = has_begun or isinstance(event, h11.Response)
                if (told := passed_back(event, self._proxy.is_stopping)) is not None:
                    self._writer.write(self._http.send(told) or b"")
            if events:
                await self._writer.drain()
            if not is_complete:
                await self._receive(connection, has_begun)

    def _of(self, connection: _Connection) -> Any:
        try:
            return connection.http.next_event()
        except h11.RemoteProtocolError as error:
            raise _Broken(str(error)) from error

    async def _receive(self, connection: _Connection, has_begun: bool) -> None:
        try:
            data = await connection.reader.read(READ)
        except OSError as error:
            stale = connection.is_used and not has_begun
            raise _Broken(str(error) or "it has closed the connection", stale) from error
        if not data and not has_begun:
            raise _Broken("it has closed the connection", connection.is_used)
        connection.http.receive_data(data)


def _record(recording: Recording | None, event: Any) -> None:
    if recording is None:
        return
    if isinstance(event, h11.Response):
        recording.answer(event.status_code, event.headers.raw_items())
    elif isinstance(event, h11.Data):
        recording.piece(bytes(event.data))
    elif isinstance(event, h11.EndOfMessage):
        recording.end("ended")


def passed(asked: Asked, to: Upstream) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request as they are passed on."""
    own = {each.strip().lower() for each in asked.header(b"connection").split(b",")}
    left_out = {*_HOP_BY_HOP, *own, b"host", b"expect", b"accept-encoding", CONVERSATION}
    found = [(b"Host", to.name)]
    found += [(name, value) for name, value in asked.headers if name.lower() not in left_out]
    if packings := asked.header(b"accept-encoding"):
        found.append((b"Accept-Encoding", narrowed(packings)))
    if asked.header(b"transfer-encoding"):
        found.append((b"Transfer-Encoding", b"chunked"))
    return found


def narrowed(packings: bytes) -> bytes:
    """Return an Accept-Encoding without what cannot be read here."""
    given = [each.strip() for each in packings.decode("latin1").split(",")]
    known = [each for each in given if each.partition(";")[0].strip().lower() in _PACKINGS]
    if any(each.partition(";")[0].strip() == "*" for each in given):
        known.append("gzip")
    return ", ".join(known or ["identity"]).encode("latin1")


def passed_back(event: Any, is_last: bool = False) -> Any:
    """Return what a client gets of an event of the answer; None for nothing. If it `is_last`, the
    client is told that the connection ends behind it.
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


# The process


class Proxy:
    """The proxy: its spool, and where requests go."""

    def __init__(self, spool: Path, upstream: Upstream | None = None) -> None:
        self.spool, self._upstream = spool, upstream
        self.is_stopping = False
        self._sessions: dict[Session, asyncio.Task[None]] = {}
        self.tls = _tls()

    def upstream_of(self, asked: Asked) -> Upstream:
        """Return where a request goes: never where the client says."""
        if self._upstream:
            return self._upstream
        return ANTHROPIC if asked.header(b"anthropic-version") else OPENAI

    async def serve(self, listening: socket.socket, lock: Path) -> None:
        """Serve until this process is told to stop, or its parent has been killed."""
        server = await self.listen(listening)
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        orphaned = asyncio.create_task(_orphaned(lock))
        told = asyncio.create_task(stopping.wait())
        await asyncio.wait({orphaned, told}, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        await self.finish(IDLE_SECONDS if orphaned.done() else 0)

    async def listen(self, listening: socket.socket) -> asyncio.Server:
        """Answer connections of a socket from now on."""
        return await asyncio.start_server(self._connected, sock=listening, limit=READ)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        writer.transport.get_extra_info("socket").setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )
        try:
            await session.serve()
        finally:
            del self._sessions[session]

    async def finish(self, patience: float = 0) -> None:
        """Let calls in flight end, and close idle connections after so many seconds: a client may
        be about to send its next request.
        """
        self.is_stopping = True
        if patience and self._sessions:
            await asyncio.wait(set(self._sessions.values()), timeout=patience)
        busy = {task for session, task in self._sessions.items() if session.is_busy}
        for session in self._sessions:
            if not session.is_busy:
                session.abort()
        if busy:
            await asyncio.wait(busy, timeout=STOPPING_SECONDS)


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    with suppress(ImportError):  # some Pythons know no authorities of the system
        import certifi

        context.load_verify_locations(certifi.where())
    return context


async def _orphaned(lock: Path) -> None:
    """Return when the parent has been killed and a new recorder holds the lock, or after a while.

    The parent holds the other end of the standard input.
    """
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    end = time.monotonic() + ORPHANED_SECONDS
    while time.monotonic() < end and not _is_held(lock):
        await asyncio.sleep(0.1)


def _is_held(lock: Path) -> bool:
    with suppress(OSError), lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--spool", type=Path, required=True)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--upstream", type=Upstream.at)
    options = parser.parse_args()
    logging.basicConfig(format="recorder: %(message)s")
    listening = socket.socket(fileno=options.fd)
    listening.setblocking(False)
    asyncio.run(Proxy(options.spool, options.upstream).serve(listening, options.lock))


if __name__ == "__main__":
    main()
