"""The process of the proxy: accepts connections, and ends without interrupting calls."""

from __future__ import annotations

import logging
import os
import select
import socket
import ssl
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Condition, Thread, stack_size

from .files import FileKeeper
from .handover import HandOver
from .headers import Upstream
from .session import IDLE_SECONDS, Session

ENDING_SECONDS = 600  # in which calls in flight may end
_AT_ONCE = 64  # connections that are accepted before other events are seen
_STACK = 2**19

logger = logging.getLogger("chatmemory.recorder")


class Proxy:
    """The proxy server, which records calls in the folder `spool`.

    All requests go to `upstream`. If this is None, headers and path of a request decide to which
    provider it goes.
    """

    def __init__(self, spool: Path, upstream: Upstream | None = None) -> None:
        self.upstream = upstream
        self.files = FileKeeper(spool)
        self.is_stopping = False
        self._sessions: set[Session] = set()
        self._changed = Condition()
        self._woken, self._waker = os.pipe()
        stack_size(_STACK)

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """The TLS context for connections to providers, made on first use."""
        context = ssl.create_default_context()
        with suppress(ImportError):  # some Pythons lack the authorities of the system
            import certifi

            context.load_verify_locations(certifi.where())
        return context

    def stop(self) -> None:
        """Let `serve` return. May be called by another thread or a signal handler."""
        self.is_stopping = True
        with suppress(OSError):
            os.write(self._waker, b"s")

    def serve(self, listening: socket.socket, hand_over: HandOver | None = None) -> None:
        """Answer connections until `stop` is called, or until `hand_over.is_done` is true. Then let
        calls in progress end, and return.

        If the recorder that started this proxy was killed, `hand_over` gives the socket to a new
        recorder.
        """
        listening.setblocking(False)
        with listening:
            while not self.is_stopping and not (hand_over and hand_over.is_done):
                for number in self._ready(listening, hand_over):
                    if number == listening.fileno():
                        self._accept(listening)
                    elif hand_over and number != self._woken:
                        hand_over.attend(number)
        if hand_over:
            hand_over.end()
        self.finish(0 if self.is_stopping else IDLE_SECONDS)

    def _ready(self, listening: socket.socket, hand_over: HandOver | None) -> list[int]:
        """Wait for a connection, a signal or a new recorder. Return the file descriptors that have
        data.
        """
        poll = select.poll()
        for number in (listening.fileno(), self._woken, *(hand_over.files if hand_over else ())):
            poll.register(number, select.POLLIN)
        seconds = hand_over.seconds if hand_over else None
        return [number for number, _ in poll.poll(None if seconds is None else 1000 * seconds)]

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:  # the client has left, or there are too many files
                logger.warning("a client's connection was not accepted: %s", error.strerror)
                time.sleep(0.01)
                return
            client.setblocking(True)
            session = Session(self, client)
            with self._changed:
                self._sessions.add(session)
            Thread(target=self._serve, args=(session,), daemon=True).start()

    def _serve(self, session: Session) -> None:
        try:
            session.serve()
        finally:
            with self._changed:
                self._sessions.discard(session)
                self._changed.notify_all()

    def finish(self, patience: float = 0) -> None:
        """Wait until the calls in progress have ended, at most ENDING_SECONDS. Close all
        connections.

        A connection without a call stays open for `patience` seconds: its client may be about to
        send a request.
        """
        self.is_stopping = True
        with self._changed:
            self._changed.wait_for(lambda: not self._sessions, patience)
            for session in self._sessions:
                session.end_if_idle()
            self._changed.wait_for(lambda: not self._sessions, ENDING_SECONDS)
        self.files.end()
        os.close(self._woken)
        os.close(self._waker)
