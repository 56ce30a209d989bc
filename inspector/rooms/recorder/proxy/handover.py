"""Hands the listening socket to a new recorder after the old recorder was killed. The proxy of the
old recorder is still running.

The old proxy continues to answer requests until the new proxy says that it has begun to answer. If
the new recorder is killed before that, the old proxy continues, and another recorder can ask for
the socket.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

ORPHANED_SECONDS = 300  # in which a proxy continues after its parent was killed
ANSWERING = b"a"


class HandOver:
    """Offers the listening socket to a new recorder, through a Unix socket at `path`, after the
    parent process was killed.

    `parent` is the reading end of a pipe. When the parent process is killed, the other end closes.
    """

    def __init__(self, listening: socket.socket, parent: int, path: Path) -> None:
        self._listening, self._parent, self._path = listening, parent, path
        self._offering: socket.socket | None = None
        self._asking: socket.socket | None = None
        self._until = 0.0
        self._is_done = False

    @property
    def files(self) -> list[int]:
        """The file descriptors to wait for. When one of them has data, call `attend`."""
        if self._offering is None:
            return [self._parent]
        return [each.fileno() for each in (self._offering, self._asking) if each]

    @property
    def seconds(self) -> float | None:
        """The seconds that are left for a new recorder to take over the socket, before this proxy
        ends. None while the parent process lives.
        """
        return max(0.0, self._until - time.monotonic()) if self._offering else None

    @property
    def is_done(self) -> bool:
        """Whether this proxy must end: the new proxy answers requests, or no new recorder came in
        time.
        """
        return self._is_done or self.seconds == 0.0

    def attend(self, number: int) -> None:
        """Handle the file descriptor `number`, which has data. This means one of three things: the
        parent process was killed, a new recorder asks for the socket, or the new recorder's proxy
        answers requests now.
        """
        if self._offering is None:
            if not os.read(number, 1):
                self._offer()
        elif number == self._offering.fileno():
            self._give()
        elif self._asking and number == self._asking.fileno():
            with suppress(OSError):
                self._is_done = self._asking.recv(1) == ANSWERING
            self._asking.close()
            self._asking = None

    def end(self) -> None:
        """Stop offering the listening socket. A new recorder that asks for the socket is refused at
        once.
        """
        for each in (self._offering, self._asking):
            if each:
                each.close()

    def _offer(self) -> None:
        """Offer the socket at `path`, from which an earlier proxy may have offered it."""
        self._until = time.monotonic() + ORPHANED_SECONDS
        self._offering = socket.socket(socket.AF_UNIX)
        own = self._path.with_name(f"{self._path.name}-{os.getpid()}")
        with suppress(OSError):
            own.unlink(missing_ok=True)
            self._offering.bind(str(own))
            self._offering.listen(8)
            own.rename(self._path)

    def _give(self) -> None:
        assert self._offering
        with suppress(OSError):
            asking, _ = self._offering.accept()
            if self._asking:
                self._asking.close()
            self._asking = asking
            socket.send_fds(asking, [b"s"], [self._listening.fileno()])
