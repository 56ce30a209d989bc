"""The process of the proxy."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from .headers import ClientRequest, Upstream
from .session import READ, Session

ANTHROPIC, OPENAI = Upstream.at("https://api.anthropic.com"), Upstream.at("https://api.openai.com")
ORPHANED_SECONDS = 300  # in which a proxy continues after its parent was killed
IDLE_SECONDS = 10  # in which a client may still send a request on its open connection
STOPPING_SECONDS = 30


class Proxy:
    """The proxy: its spool, and the upstreams of requests."""

    def __init__(self, spool: Path, upstream: Upstream | None = None) -> None:
        self.spool, self._upstream = spool, upstream
        self.is_stopping = False
        self._sessions: dict[Session, asyncio.Task[None]] = {}

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """The TLS context for connections to upstreams. It is made on first use."""
        context = ssl.create_default_context()
        with suppress(ImportError):  # some Pythons lack the authorities of the system
            import certifi

            context.load_verify_locations(certifi.where())
        return context

    def upstream_of(self, request: ClientRequest) -> Upstream:
        """Return the upstream of a request. The client's choice of a host is ignored."""
        if self._upstream:
            return self._upstream
        return ANTHROPIC if request.header(b"anthropic-version") else OPENAI

    async def serve(self, listening: socket.socket, heir: Path) -> None:
        """Serve until a signal to stop comes, or the next recorder has taken the socket."""
        server = await self.listen(listening)
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        inherited = asyncio.create_task(_inherited(listening, heir))
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({inherited, stop}, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        await self.finish(IDLE_SECONDS if inherited.done() else 0)

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
        """Let calls in flight end, and close idle connections after `patience` seconds, because a
        client may be about to send its next request.
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


async def _inherited(listening: socket.socket, heir: Path) -> None:
    """Return once the parent was killed and the next recorder has taken the socket, or after
    ORPHANED_SECONDS. Clients that connect meanwhile wait in the socket's queue and are not refused.

    The parent holds the other end of the standard input.
    """
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    with suppress(OSError, TimeoutError), socket.socket(socket.AF_UNIX) as offering:
        heir.unlink(missing_ok=True)
        offering.bind(str(heir))
        offering.listen(1)
        offering.setblocking(False)
        async with asyncio.timeout(ORPHANED_SECONDS):
            asking, _ = await loop.sock_accept(offering)
        with asking:
            socket.send_fds(asking, [b"s"], [listening.fileno()])
    with suppress(OSError):
        heir.unlink()
