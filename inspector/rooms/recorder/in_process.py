"""Records the calls of clients in this process without a proxy: `record(client)`.

The transport of an httpx client is wrapped, because httpx's event hooks miss streamed bodies.
During a call, only references to parts of request and answer are collected. After the call, a
thread removes secrets and writes the call to the spool (the folder of recorded calls).

In a process of the site, this thread also stores the calls in the database. If the process is
killed, calls that are not yet in the spool are lost. The proxy would still record these calls,
because it is a separate process.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from typing import TypeVar

from chatmemory.messages.json_values import LibraryValue
from inspector.rooms.recorder.folders import spool_folder
from inspector.rooms.recorder.proxy.files import SpoolFile, Unwritten
from inspector.rooms.recorder.proxy.headers import (
    CONTENT_LENGTH,
    CONVERSATION,
    Answer,
    RequestHead,
    head_of,
    values_by_name,
)
from inspector.rooms.recorder.proxy.recording import COPIED, Recording, count_passed

WAITING_CALLS, WAITING_BYTES = 1_000, 64 * 2**20  # that wait to be written; more are dropped
FLUSH_SECONDS = 1.0  # in which the thread may end its work when the process ends
STORING_SECONDS = 0.2  # between two looks at the spool

Client = TypeVar("Client")


def record(client: Client, spool: Path | None = None, is_storing: bool = True) -> Client:
    """Record all later calls of a client, and return the same client.

    - `client`: a client of OpenAI, Anthropic or google-genai, or a client of httpx, each
      synchronous or for asyncio. Raises TypeError for a client of another kind.
    - `spool`: the folder for recorded calls; by default the folder of the command `record`.
    - `is_storing`: whether this process also stores the recorded calls in the database. This only
      happens if Django runs here with the app `inspector.rooms.recorder`. Otherwise the command
      `record` stores them.

    Calls that google-genai's client for asyncio sends with aiohttp are not recorded.

    A request can name its conversation in the header `X-Chatmemory-Conversation`, which is not sent
    to the provider.
    """
    found = list(_http_clients(client))
    if not found:
        raise TypeError(
            f"{type(client).__name__} does not send its requests with httpx, so its calls cannot "
            "be recorded: use the command record instead"
        )
    for each in found:
        _wrap(each, _writer(spool or spool_folder(), is_storing))
    return client


def _http_clients(client: LibraryValue) -> Iterator[LibraryValue]:
    """Yield the httpx clients inside the client of a provider's library."""
    holder = getattr(client, "_api_client", client)  # google-genai's
    names = ("_client", "_httpx_client", "_async_httpx_client")
    for each in (client, *(getattr(holder, name, None) for name in names)):
        if hasattr(each, "_transport") and hasattr(each, "_mounts"):
            yield each


def _wrap(client: LibraryValue, writer: Writer) -> None:
    library = next(
        sys.modules[base.__module__.partition(".")[0]]
        for base in type(client).__mro__
        if base.__module__.partition(".")[0].startswith("httpx")
    )
    is_async = hasattr(client, "aclose")

    def wrapped(inner: LibraryValue) -> LibraryValue:
        if inner is None or isinstance(inner, _Transport):
            return inner
        kind = _AsyncTransport if is_async else _Transport
        return kind(inner, library, writer)

    client._transport = wrapped(client._transport)
    client._mounts = {pattern: wrapped(each) for pattern, each in client._mounts.items()}


# What passes


# Wide: filled in bit by bit while a call passes, as its pieces and its end arrive.
@dataclass(eq=False)
class Exchange:
    """A request of a client and its answer, filled in while the call is in progress. If `body` is
    None, the request is only counted, not recorded.

    - `provider`: the provider's host, with a port if the URL has one.
    - `at`: the start of the call, in seconds since 1970.
    - `began`: the start of the call, in seconds of the monotonic clock.
    - `answer`: the head of the answer; None until the head has arrived.
    - `pieces`: the recorded parts of the answer's body.
    - `size`: the number of bytes in `pieces`.
    - `how`: "ended" for a complete answer, else "cut"; "" until the call ends.
    - `error`: why the call failed, or "".
    - `duration`: seconds from start to end.
    """

    head: RequestHead
    provider: str
    body: bytes | None
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)
    answer: Answer | None = None
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    how: str = ""
    error: str = ""
    duration: float = 0.0

    def add(self, piece: bytes) -> None:
        if self.size <= COPIED:
            self.pieces.append(piece)
            self.size += len(piece)

    @property
    def whole_size(self) -> int:
        return len(self.body or b"") + self.size

    def end(self, how: str, error: str = "") -> bool:
        """Note how the call ended. Return False if the end was noted before."""
        if self.how:
            return False
        self.how, self.error, self.duration = how, error, time.monotonic() - self.began
        return True

    def write(self, file: SpoolFile) -> None:
        """Write the call to a file of the spool. For a request that is only counted, write only its
        method and path, such as `POST /v1/embeddings`.
        """
        if self.body is None:
            count_passed(file, self.head)
            file.close()
            return
        times = (self.at, self.duration)
        recording = Recording(file, self.head, self.provider, times=times)
        recording.request_piece(self.body, is_last=True)
        if self.answer:
            recording.answer(self.answer)
            recording.answer_piece(b"".join(self.pieces), is_last=self.how == "ended")
        recording.end(self.how, self.error)
        file.close()


class _Transport:
    """A transport of httpx that passes requests on, and collects the parts of calls."""

    def __init__(self, inner: LibraryValue, library: LibraryValue, writer: Writer) -> None:
        self._inner, self._library, self._writer = inner, library, writer

    def __getattr__(self, name: str) -> LibraryValue:
        return getattr(self._inner, name)

    def __enter__(self) -> _Transport:
        self._inner.__enter__()
        return self

    def __exit__(self, *args: LibraryValue) -> None:
        self._inner.__exit__(*args)

    def handle_request(self, request: LibraryValue) -> LibraryValue:
        exchange = _exchange_of(request, self._writer)
        if exchange is None:
            return self._inner.handle_request(request)
        try:
            response = self._inner.handle_request(request)
        except BaseException as error:
            self._end(exchange, "cut", f"{type(error).__name__}: {error}")
            raise
        _keep_head(exchange, response)
        response.stream = self._watched(response.stream, exchange)
        return response

    def _end(self, exchange: Exchange, how: str, error: str = "") -> None:
        if exchange.end(how, error):
            self._writer.put(exchange)

    def _watched(self, stream: LibraryValue, exchange: Exchange) -> LibraryValue:
        end = self._end

        class Watched(self._library.SyncByteStream):  # type: ignore[misc, name-defined]  # the library is chosen at run time
            def __iter__(self) -> Iterator[bytes]:
                try:
                    for piece in stream:
                        exchange.add(piece)
                        yield piece
                except GeneratorExit:
                    raise
                except BaseException as error:
                    end(exchange, "cut", f"{type(error).__name__}: {error}")
                    raise
                end(exchange, "ended")

            def close(self) -> None:
                stream.close()
                end(exchange, "cut", "the client left")

        return Watched()


class _AsyncTransport(_Transport):
    """A transport of httpx for asyncio that passes requests on, and collects the parts of calls."""

    async def __aenter__(self) -> _AsyncTransport:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *args: LibraryValue) -> None:
        await self._inner.__aexit__(*args)

    async def handle_async_request(self, request: LibraryValue) -> LibraryValue:
        exchange = _exchange_of(request, self._writer)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            self._end(exchange, "cut", f"{type(error).__name__}: {error}")
            raise
        _keep_head(exchange, response)
        response.stream = self._watched(response.stream, exchange)
        return response

    def _watched(self, stream: LibraryValue, exchange: Exchange) -> LibraryValue:
        end = self._end

        class Watched(self._library.AsyncByteStream):  # type: ignore[misc, name-defined]  # the library is chosen at run time
            async def __aiter__(self) -> LibraryValue:
                try:
                    async for piece in stream:
                        exchange.add(piece)
                        yield piece
                except GeneratorExit:
                    raise
                except BaseException as error:
                    end(exchange, "cut", f"{type(error).__name__}: {error}")
                    raise
                end(exchange, "ended")

            async def aclose(self) -> None:
                await stream.aclose()
                end(exchange, "cut", "the client left")

        return Watched()


def _exchange_of(request: LibraryValue, writer: Writer) -> Exchange | None:
    """Return the exchange for a model call whose body is in memory. Count any other POST by its
    name, and return None.

    The header with the conversation is removed from the request.
    """
    headers = tuple(each for each in request.headers.raw if each[0].lower() != CONTENT_LENGTH)
    size = sum(len(name) + len(value) for name, value in headers)
    head = head_of(request.method.encode(), request.url.raw_path, headers, size)
    request.headers.pop(CONVERSATION.decode(), None)
    port = f":{request.url.port}" if request.url.port else ""
    exchange = Exchange(head, f"{request.url.host}{port}", None)
    if head.is_recorded:
        with suppress(Exception):  # a stream that only the transport reads: httpx's RequestNotRead
            exchange.body = request.content
    if exchange.body is not None:
        return exchange
    if head.passed_name:
        writer.put(exchange)
    return None


def _keep_head(exchange: Exchange, response: LibraryValue) -> None:
    headers = response.headers.raw
    exchange.answer = Answer(response.status_code, b"", headers, values_by_name(headers))


# The thread


class Writer:
    """Writes calls to the spool in its own thread, which starts with the first call."""

    def __init__(self, folder: Path, is_storing: bool) -> None:
        self._folder, self._is_storing = folder, is_storing
        self._unwritten = Unwritten()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Start without calls and without a thread. After a fork, only the parent writes the calls
        that it had.
        """
        self._changed = Condition()
        self._waiting: deque[Exchange] = deque()
        self._bytes = 0
        self._is_busy = False
        self._thread: Thread | None = None

    def put(self, exchange: Exchange) -> None:
        """Give an ended call to the thread that writes it. If too many calls wait for the thread,
        the call is lost, and counted as lost.
        """
        size = exchange.whole_size
        with self._changed:
            is_full = len(self._waiting) >= WAITING_CALLS or self._bytes + size > WAITING_BYTES
            if is_full and self._waiting:
                self._unwritten.add(1)
                return
            self._waiting.append(exchange)
            self._bytes += size
            if self._thread is None:
                self._thread = Thread(target=self._run, name="chatmemory-record", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait up to `seconds` until all calls are written. Return whether all are written."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_busy), seconds)

    def _run(self) -> None:
        with suppress(OSError):  # then the calls are counted as unwritten
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting, STORING_SECONDS)
                exchange = self._waiting.popleft() if self._waiting else None
                self._is_busy = exchange is not None
            if exchange is None:
                if self._is_storing:
                    _store(self._folder)
                continue
            with suppress(Exception):  # Recording counts what it cannot write
                exchange.write(SpoolFile(self._folder, self._unwritten))
                self._unwritten.write(self._folder)
            with self._changed:
                self._bytes -= exchange.whole_size
                self._is_busy = False
                self._changed.notify_all()


_writers: dict[Path, Writer] = {}


def _writer(folder: Path, is_storing: bool) -> Writer:
    """Return the writer for a spool folder."""
    if folder not in _writers:
        _writers[folder] = Writer(folder, is_storing)
    return _writers[folder]


def flush(seconds: float = FLUSH_SECONDS) -> bool:
    """Wait up to `seconds` until all ended calls are in the spool. Return whether all are there."""
    end = time.monotonic() + seconds
    return all(each.flush(end - time.monotonic()) for each in _writers.values())


def _begin_anew() -> None:
    for each in _writers.values():
        each._begin_anew()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(flush)


def _store(folder: Path) -> None:
    """Store the calls of the spool in the database, if this is a process of the site and no other
    process is storing.
    """
    from django.apps import apps

    if not apps.ready or not apps.is_installed("inspector.rooms.recorder"):
        return
    from django.db import connections

    from inspector.rooms.recorder import spool
    from inspector.rooms.recorder.storing import Storing

    with suppress(OSError), (folder / "storing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: another process stores
        if spool.waiting(folder, 1):
            Storing(folder).store_waiting()
            connections.close_all()
