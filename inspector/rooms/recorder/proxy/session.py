"""Serves the connection of a client: passes requests on to providers, and passes answers back in
chunks.

Each client connection has its own thread, so that no call waits for another call. The thread has
its own connections to providers. They are closed together with the client's connection.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
from contextlib import suppress
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING

from .files import SpoolFile
from .headers import (
    CONTENT_LENGTH,
    NO_HEAD,
    RESENT,
    Answer,
    ClientRequest,
    RequestHead,
    Upstream,
    passed_back,
    passed_head,
)
from .parsing import LAST_CHUNK, AnswerReader, Malformed, RequestReader, chunk, head
from .recording import Recording, count_passed

if TYPE_CHECKING:
    from .server import Proxy

READ = 2**16
_CONNECT_SECONDS = 30
_TIMEOUT = struct.pack("ll", 600, 0)  # seconds in which an upstream must take more of a request
IDLE_SECONDS = 10  # in which a client may send a request to a proxy that has been replaced
_LINGERING_SECONDS = 2  # in which a client that is refused may send the rest
_LEAVING = getattr(select, "POLLRDHUP", 0)  # Linux
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class _ClientGone(Exception):
    """The client has left."""


class _UpstreamGone(Exception):
    """The provider does not accept the rest of the request."""


class _Broken(Exception):
    """The provider has closed the connection. `is_stale` means that an older connection was used
    and no byte of the answer has come: the request can be sent again.
    """

    def __init__(self, why: str, is_stale: bool = False) -> None:
        super().__init__(why)
        self.is_stale = is_stale


class _Connection:
    """A connection to a provider, and the client that waits for its answers. Raises _Broken if the
    connection cannot be opened.
    """

    def __init__(self, to: Upstream, tls: ssl.SSLContext | None, client: socket.socket) -> None:
        self.is_used = False
        self.reader = AnswerReader()
        try:
            self.socket = socket.create_connection((to.host, to.port), _CONNECT_SECONDS)
            if tls:
                self.socket = tls.wrap_socket(self.socket, server_hostname=to.host)
        except OSError as error:
            raise _Broken(str(error) or type(error).__name__) from error
        self.socket.settimeout(None)  # Python would ask before each call whether it has to wait
        for timeout in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            self.socket.setsockopt(socket.SOL_SOCKET, timeout, _TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client, self._poll = client, select.poll()
        self._poll.register(self.socket, select.POLLIN)
        self._watch_client(select.POLLIN)

    def _watch_client(self, events: int) -> None:
        self._watched = events
        self._poll.register(self._client, events)

    def has_data(self) -> bool:
        """Return whether decrypted bytes are waiting. Polling the socket does not show them."""
        return isinstance(self.socket, ssl.SSLSocket) and self.socket.pending() > 0

    def is_idle(self) -> bool:
        """Return whether the connection is open and has received nothing since the last answer."""
        return not self.has_data() and self.socket.fileno() not in dict(self._poll.poll(0))

    def wait(self) -> None:
        """Wait until the provider has sent data. Raises _ClientGone if the client disconnects.

        Data from the client is its next request, and does not end the wait.
        """
        if self.has_data():
            return
        client = self._client.fileno()
        if self._watched != select.POLLIN:
            self._watch_client(select.POLLIN)
        while not (events := dict(self._poll.poll())).keys() - {client}:
            if events[client] & ~select.POLLIN or not _has_data(self._client):
                raise _ClientGone
            self._watch_client(_LEAVING)

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise _UpstreamGone from error

    def read(self) -> None:
        """Read the part of the answer that has arrived. Raises _Broken if the provider closed the
        connection.
        """
        is_stale = self.is_used and not self.reader.has_begun
        try:
            data = self.socket.recv(READ)
        except OSError as error:
            raise _Broken(str(error) or "it closed the connection", is_stale) from error
        try:
            if data:
                self.reader.feed(data)
            elif not self.reader.end():
                raise _Broken("it closed the connection", is_stale)
        except Malformed as error:
            raise _Broken(str(error)) from error

    def close(self) -> None:
        with suppress(OSError):
            self.socket.close()


class Session:
    """The connection of a client, and the connections to providers for its requests."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy, self._client = proxy, client
        self._reader = RequestReader()
        self._upstream: dict[Upstream, _Connection] = {}
        self._turn, self._is_busy = Lock(), False
        self._has_begun = False  # the answer that is passed back

    def end_if_idle(self) -> None:
        """Close the client's connection if no call is in progress; else do nothing. Requests that
        have arrived, but were not read yet, are answered first.
        """
        with self._turn, suppress(OSError):
            if not self._is_busy:
                self._client.shutdown(socket.SHUT_RD)

    def serve(self) -> None:
        """Answer the requests of a client until the client disconnects."""
        self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while (request := self._next()) and self._answer(request):
                with self._turn:
                    self._is_busy = bool(self._reader.requests)
                if self._proxy.is_stopping:  # since the answer began, which has not said so
                    self._client.settimeout(IDLE_SECONDS)
        except Malformed as error:
            with suppress(OSError):
                self._refuse(error.status, str(error))
        except (_ClientGone, OSError):
            pass
        finally:
            for each in self._upstream.values():
                each.close()
            self._close()

    def _close(self) -> None:
        """Close the connection. The client can still read all that was sent."""
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)
        self._client.close()

    # Reading the client

    def _next(self) -> ClientRequest | None:
        """Return the next request once its head has arrived; None if the client has left."""
        waiting = self._reader.requests
        while not (waiting and waiting[0].head is not NO_HEAD):
            data = self._client.recv(READ)
            if not data:
                return None
            with self._turn:
                self._is_busy = True
            self._reader.feed(data)
        return waiting.popleft()

    def _read_more(self) -> None:
        """Read more of the body of a request."""
        try:
            data = self._client.recv(READ)
        except OSError as error:
            raise _ClientGone from error
        if not data:
            raise _ClientGone
        self._reader.feed(data)

    # Answering

    def _answer(self, request: ClientRequest) -> bool:
        """Answer a request. Return whether the connection stays open."""
        if why := request.head.refusal:
            self._refuse(*why)
            return False
        to = self._proxy.upstream or request.head.provider
        file = self._proxy.files.take()
        recording = self._recording(request.head, to, file)
        self._has_begun = False
        try:
            return self._pass_on(request, to, recording)
        except _Broken as error:
            self._read_rest(request, recording)
            if recording:
                recording.end("failed", str(error))
            if not self._has_begun:  # an answer that was cut is cut for the client, too
                self._refuse(502, f"the provider cannot be reached: {error}")
            return False
        except (_ClientGone, OSError) as error:
            if recording:
                recording.end("cancelled", "the client left before the answer was complete")
            raise _ClientGone from error
        finally:
            if recording:
                recording.end("cut", "the recorder was stopped before the answer was complete")
            self._proxy.files.give_back(file)

    def _recording(self, head: RequestHead, to: Upstream, file: SpoolFile) -> Recording | None:
        try:
            if head.is_recorded:
                return Recording(file, head, to.host)
            count_passed(file, head)
        except Exception as error:  # the call goes on without its recording
            file.give_up(error)
        return None

    def _refuse(self, status: int, why: str) -> None:
        """Reject a request with a status and a reason, and close the connection."""
        body = json.dumps({"error": {"type": "recorder_error", "message": why}}).encode()
        headers = [
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
        ]
        first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
        self._client.sendall(head(first, headers) + body)
        self._client.shutdown(socket.SHUT_WR)
        self._client.settimeout(_LINGERING_SECONDS)
        with suppress(OSError):  # bytes that are not read would take the answer with them
            while self._client.recv(READ):
                pass

    def _read_rest(self, request: ClientRequest, recording: Recording | None) -> None:
        """Read and record the rest of a body that is no longer passed on."""
        with suppress(_ClientGone, Malformed):
            while True:
                if recording:
                    recording.request_piece(request.take(), request.is_whole)
                if request.is_whole:
                    return
                self._read_more()

    # Passing a request on

    def _pass_on(self, request: ClientRequest, to: Upstream, recording: Recording | None) -> bool:
        """Pass a request on and its answer back, twice if the first connection was stale. Return
        whether the client's connection stays open.
        """
        connection = self._connected(to)
        try:
            return self._exchange(connection, request, to, recording)
        except _Broken as broken:
            if not broken.is_stale or request.size > RESENT:
                raise
            return self._exchange(self._connected(to), request, to, recording)

    def _connected(self, to: Upstream) -> _Connection:
        """Return a connection to a provider: the previous connection if it is still open."""
        known = self._upstream.pop(to, None)
        if known and known.is_idle():
            known.is_used = True
            return known
        if known:
            known.close()
        return _Connection(to, self._proxy.tls if to.is_secure else None, self._client)

    def _exchange(
        self,
        connection: _Connection,
        request: ClientRequest,
        to: Upstream,
        recording: Recording | None,
    ) -> bool:
        """Pass a request on over a connection, and its answer back. Return whether the client's
        connection stays open. Raises _Broken.
        """
        is_kept = False
        connection.reader.begin(request.head.method)
        try:
            with suppress(_UpstreamGone):  # it may have answered before
                self._send(connection, request, to, recording)
            stays_open = self._pass_back(connection, request, recording)
            is_kept = connection.reader.answer.keeps_alive and request.is_whole
            return stays_open and request.is_whole
        finally:
            if is_kept:
                self._upstream[to] = connection
            else:
                connection.close()

    def _send(
        self,
        connection: _Connection,
        request: ClientRequest,
        to: Upstream,
        recording: Recording | None,
    ) -> None:
        """Send the request as it arrives. Raises _UpstreamGone if the provider does not accept the
        rest.
        """
        unsent = request.length.join(passed_head(request.head, to))
        is_chunked = request.head.is_chunked
        again = b"".join(request.kept)
        if request.head.awaits_word and not request.is_whole:
            self._client.sendall(_GO_ON)
        while True:
            new = request.take()
            if data := again + new:
                unsent += chunk(data) if is_chunked else data
                again = b""
            if request.is_whole and is_chunked:
                unsent += LAST_CHUNK
            try:
                if data or request.is_whole:
                    connection.send(unsent)
                    unsent = b""
            finally:  # the upstream need not wait for it
                if recording and (new or request.is_whole):
                    recording.request_piece(new, request.is_whole)
            if request.is_whole:
                return
            self._read_more()

    # Passing an answer back

    def _pass_back(
        self,
        connection: _Connection,
        request: ClientRequest,
        recording: Recording | None,
    ) -> bool:
        """Pass an answer back as it arrives. Return whether the client's connection stays open.

        Bytes are recorded before they are passed back.
        """
        answer = connection.reader.answer
        stays_open = is_chunked = False
        while not answer.is_whole:
            connection.wait()
            connection.read()
            if not answer.has_head:
                continue
            unsent = b""
            if not self._has_begun:
                self._has_begun = True
                if recording:
                    recording.answer(answer)
                is_chunked = not request.is_old and _needs_chunks(answer, request)
                is_ended = request.is_old or not request.keeps_alive or self._proxy.is_stopping
                stays_open = not is_ended
                unsent = _answer_head(answer, request, is_chunked, is_ended)
            data = answer.take()
            if recording and (data or answer.is_whole):
                recording.answer_piece(data, answer.is_whole)
            if is_chunked:
                unsent += (chunk(data) if data else b"") + (LAST_CHUNK if answer.is_whole else b"")
            else:
                unsent += data
            self._client.sendall(unsent)
        return stays_open


def _needs_chunks(answer: Answer, request: ClientRequest) -> bool:
    """Return whether an answer must be sent in chunks: it has a body, and its length is not known
    at the beginning.
    """
    has_body = request.head.method != b"HEAD" and answer.status not in (204, 304)
    return has_body and CONTENT_LENGTH not in answer.values


def _answer_head(answer: Answer, request: ClientRequest, is_chunked: bool, is_ended: bool) -> bytes:
    headers = passed_back(answer)
    if is_chunked:
        headers.append((b"Transfer-Encoding", b"chunked"))
    if is_ended:
        headers.append((b"Connection", b"close"))
    return head(b"HTTP/1.1 %d %s" % (answer.status, answer.reason), headers)


def _has_data(client: socket.socket) -> bool:
    """Return True if bytes of a client are waiting, and False if the client has disconnected."""
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except OSError:
        return False
