"""The connection of a client: passes each request on unchanged, and its answer back in chunks.

Each connection of a client has its own connections upstream, which end with it.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h11

from .headers import (
    CONVERSATION,
    RESENT,
    ClientRequest,
    Upstream,
    kept_headers,
    passed,
    passed_back,
    refusal,
    secrets_in,
)
from .recording import Recording

if TYPE_CHECKING:
    from .server import Proxy

READ = 2**16
_HEADERS = 2**20
_CONNECT_SECONDS = 30


class _ClientGone(Exception):
    """The client has left."""


class _Broken(Exception):
    """The upstream has closed the connection. It `is_stale` if it was open before the request, and
    no byte of the answer has come.
    """

    def __init__(self, why: str, is_stale: bool = False) -> None:
        super().__init__(why)
        self.is_stale = is_stale


class _Connection:
    """A connection to an upstream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADERS)
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
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEADERS)
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
        except (_ClientGone, ConnectionError, TimeoutError):
            pass
        finally:
            for each in self._upstream.values():
                each.abort()
            with suppress(OSError):
                self._writer.close()

    async def _next(self) -> Any:
        """Return the next event of the client. Raises _ClientGone."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._http.send(go_on) or b"")
            data = await self._reader.read(READ)
            if not data and self._http.their_state is h11.SEND_BODY:
                raise _ClientGone
            self._http.receive_data(data)
        return event

    async def _answer(self, event: h11.Request) -> None:
        request = ClientRequest(event.method, event.target, list(event.headers.raw_items()))
        if why := refusal(request):
            await self._refuse(*why)
            return
        to = self._proxy.upstream_of(request)
        recording = self._recording(request, to) if request.is_recorded else None
        try:
            await self._pass_on(request, to, recording)
        except _Broken as error:
            await self._read_rest(request, recording)
            if recording:
                recording.end("failed", str(error))
            if self._http.our_state is not h11.SEND_RESPONSE:
                raise _ClientGone from error  # the answer was cut, so cut the client's, too
            await self._refuse(502, f"the provider cannot be reached: {error}")
        except (_ClientGone, ConnectionError):
            if recording:
                recording.end("cancelled", "the client left before the answer was complete")
            raise _ClientGone from None
        finally:
            if recording:
                recording.end("cut", "the recorder was stopped")

    def _recording(self, request: ClientRequest, to: Upstream) -> Recording:
        head = {
            "at": time.time(),
            "path": request.target.partition(b"?")[0].decode("latin1"),
            "provider": to.host,
            "conversation": request.header(CONVERSATION).decode("utf-8", "replace")[:1000],
            "headers": kept_headers(request.headers),
        }
        return Recording(self._proxy.spool, head, secrets_in(request.headers))

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

    # Passing a request on

    async def _pass_on(
        self, request: ClientRequest, to: Upstream, recording: Recording | None
    ) -> None:
        """Pass a request on, and its answer back; once more if the connection was stale."""
        connection = await self._connected(to)
        try:
            await self._exchange(connection, request, to, recording)
        except _Broken as broken:
            connection.abort()
            if not broken.is_stale or request.size > RESENT:
                raise
            connection = await self._connected(to)
            await self._exchange(connection, request, to, recording)

    async def _connected(self, to: Upstream) -> _Connection:
        """Return a connection to an upstream; the previous one if it is still open."""
        known = self._upstream.get(to)
        if known and known.is_open and known.http.our_state is h11.DONE:
            with suppress(h11.LocalProtocolError):
                known.http.start_next_cycle()
                known.is_used = True
                return known
        if known:
            known.abort()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                found = await asyncio.open_connection(
                    to.host, to.port, ssl=self._proxy.tls if to.is_secure else None, limit=READ
                )
        except (OSError, TimeoutError) as error:
            raise _Broken(str(error) or type(error).__name__) from error
        self._upstream[to] = _Connection(*found)
        return self._upstream[to]

    async def _exchange(
        self,
        connection: _Connection,
        request: ClientRequest,
        to: Upstream,
        recording: Recording | None,
    ) -> None:
        head = h11.Request(
            method=request.method,
            target=to.path.encode() + request.target,
            headers=passed(request, to),
        )
        try:
            connection.writer.write(connection.http.send(head) or b"")
            await self._send_body(connection, request, recording)
        except (ConnectionError, OSError):
            pass  # the upstream may have answered before
        leaving = asyncio.create_task(self._left())
        answering = asyncio.create_task(self._pass_back(connection, request, recording))
        try:
            await asyncio.wait({leaving, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                connection.abort()
                raise _ClientGone
            await answering
        finally:
            for task in (leaving, answering):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task

    async def _send_body(
        self, connection: _Connection, request: ClientRequest, recording: Recording | None
    ) -> None:
        """Send what has come of the body, and the rest as it comes."""
        for data in request.body:
            connection.writer.write(connection.http.send(h11.Data(data=data)) or b"")
        while not request.is_whole:
            event = await self._next()
            if isinstance(event, h11.EndOfMessage):
                request.is_whole = True
            elif isinstance(event, h11.Data):
                data = bytes(event.data)
                request.keep(data)
                if recording:
                    recording.request_piece(data)
                connection.writer.write(connection.http.send(h11.Data(data=data)) or b"")
                await connection.writer.drain()
            else:
                raise _ClientGone
        connection.writer.write(connection.http.send(h11.EndOfMessage()) or b"")
        await connection.writer.drain()

    async def _read_rest(self, request: ClientRequest, recording: Recording | None) -> None:
        """Read the rest of a body that is not passed on, so that it is recorded."""
        while not request.is_whole and isinstance(event := await self._next(), h11.Data):
            if recording:
                recording.request_piece(bytes(event.data))
        request.is_whole = True

    async def _left(self) -> None:
        """Return once the client has left. Data that it sends meanwhile is its next request."""
        while data := await self._reader.read(READ):
            self._http.receive_data(data)
        self._reader.feed_eof()

    async def _pass_back(
        self, connection: _Connection, request: ClientRequest, recording: Recording | None
    ) -> None:
        """Pass an answer back. Events that arrive together are recorded before any is passed on."""
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
                if (passed_on := passed_back(event, self._proxy.is_stopping)) is not None:
                    self._writer.write(self._http.send(passed_on) or b"")
            if events:
                await self._writer.drain()
            if not is_complete:
                await self._receive(connection, has_begun)

    def _of(self, connection: _Connection) -> Any:
        try:
            event = connection.http.next_event()
        except h11.RemoteProtocolError as error:
            raise _Broken(str(error)) from error
        if event is h11.PAUSED:
            raise _Broken("it speaks another protocol from here on")
        return event

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
        recording.answer_piece(bytes(event.data))
    elif isinstance(event, h11.EndOfMessage):
        recording.end("ended")
