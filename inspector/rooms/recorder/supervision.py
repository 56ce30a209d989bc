"""Runs two proxies: one answers requests, and the other takes over as soon as the first ends.

The listening socket stays open in between, so that clients wait and are not rejected. If the
process that runs the proxies is killed, the answering proxy continues for some minutes. A recorder
that is started in this time takes the socket from this proxy, and starts proxies of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from inspector.rooms.recorder.proxy.handover import ANSWERING

HOST = "127.0.0.1"
TAKEN_SECONDS = 5.0  # in which an orphaned proxy notices that its supervisor has died
AGAIN_SECONDS = 0.05  # between two starts of proxies that end at once
QUEUE = 1024  # connections that wait for the proxy
DISMISSED_SECONDS = 1.0  # between two looks for orphaned proxies
ENDED_SECONDS = 1.0  # in which calls in flight may end before this process does
_PATHS = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]


class PortTaken(Exception):
    """Raised if another recorder or another program uses the port."""


class Supervisor:
    """Holds the listening socket, and runs two proxies: the proxy that answers, and the proxy that
    takes over next.
    """

    def __init__(self, port: int, folder: Path, upstream: str | None) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._upstream = folder, upstream
        self._heir = folder / f"port-{port}.sock"
        self._socket, before = _listening(port, self._heir)
        self.port: int = self._socket.getsockname()[1]
        self._lock, self._is_stopping = Lock(), False
        self._proxy = self._started(before)
        if before:
            before.close()  # from now on it ends with the proxy
        _let_answer(self._proxy)
        self._next = self._started()
        self._thread = Thread(target=self._keep_running, daemon=True)
        self._thread.start()
        self._stopped = Event()
        Thread(target=self._dismiss_orphans, daemon=True).start()

    def _started(self, before: socket.socket | None = None) -> subprocess.Popen[bytes]:
        """Start a proxy that waits. A byte on its standard input lets it answer, and the end of the
        input means that this process has died. It tells the proxy before it that it answers.
        """
        number = self._socket.fileno()
        numbers = [number, before.fileno()] if before else [number]
        command = [sys.executable, "-m", "proxy", "--fd", str(number)]
        command += ["--spool", str(self._folder), "--heir", str(self._heir)]
        command += ["--upstream", self._upstream] if self._upstream else []
        command += ["--before", str(before.fileno())] if before else []
        return subprocess.Popen(  # noqa: S603  (its own package)
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS)},
            pass_fds=numbers,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _keep_running(self) -> None:
        while True:
            self._proxy.wait()
            with self._lock:
                if self._is_stopping:
                    return
                self._proxy = self._next
                _let_answer(self._proxy)
                self._next = self._started()
            time.sleep(AGAIN_SECONDS)

    def _dismiss_orphans(self) -> None:
        """Let orphaned proxies end: one may have noticed only now that its supervisor has died."""
        while not self._stopped.wait(DISMISSED_SECONDS):
            _dismiss(self._heir)

    def stop(self) -> None:
        """Stop accepting connections. The proxy continues until its calls in progress have
        ended.
        """
        _dismiss(self._heir)
        with self._lock:
            self._is_stopping = True
            self._stopped.set()
            self._socket.close()
            self._next.kill()
            self._proxy.terminate()
        self._thread.join(ENDED_SECONDS)
        self._next.wait()


def _let_answer(proxy: subprocess.Popen[bytes]) -> None:
    """Let a proxy answer from now on. A proxy that has died is replaced later, like any other."""
    assert proxy.stdin
    with suppress(OSError):
        proxy.stdin.write(b"\n")
        proxy.stdin.flush()


def _listening(port: int, heir: Path) -> tuple[socket.socket, socket.socket | None]:
    """Return the socket of an orphaned proxy, with the connection to this proxy, or a new socket.

    Raises PortTaken.
    """
    end = time.monotonic() + TAKEN_SECONDS
    while True:
        with suppress(OSError):
            return _inherited(heir)
        try:
            return socket.create_server((HOST, port), backlog=QUEUE), None
        except OSError as error:
            if time.monotonic() > end:
                raise PortTaken(
                    f"the port {port} cannot be used ({error.strerror}): choose a different port "
                    "with --port"
                ) from error
        time.sleep(0.02)


def _dismiss(heir: Path) -> None:
    with suppress(OSError):
        listening, orphan = _inherited(heir)
        with listening, orphan:
            orphan.sendall(ANSWERING)


def _inherited(heir: Path) -> tuple[socket.socket, socket.socket]:
    """Return the socket that a proxy hands over. Raises OSError if no proxy does."""
    asking = socket.socket(socket.AF_UNIX)
    try:
        asking.settimeout(1)
        asking.connect(str(heir))
        _, numbers, _, _ = socket.recv_fds(asking, 1, 1)
        if not numbers:
            raise ConnectionError("the previous recorder process has ended")
        return socket.socket(fileno=numbers[0]), asking
    except OSError:
        asking.close()
        raise
