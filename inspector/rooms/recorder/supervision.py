"""Runs two proxies: one answers requests, and one waits to replace it.

The listening socket stays open all the time, so that clients wait and are not rejected. If this
process is killed, the answering proxy continues for some minutes. A recorder that starts in this
time takes over the socket.
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
    """Holds the listening socket and runs two proxies: one answers requests, and one waits to
    replace it.
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
        """Start a proxy that waits. It answers after a byte on its standard input; the end of the
        input means that this process has died. `before` is a connection to an older proxy, which is
        told when the new proxy answers.
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
        """End orphaned proxies, which noticed late that their supervisor has died."""
        while not self._stopped.wait(DISMISSED_SECONDS):
            _dismiss(self._heir)

    def stop(self) -> None:
        """Stop accepting connections, and wait at most one second for calls in progress. The proxy
        process completes longer calls, and then ends.
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
    """Tell a proxy to answer from now on. Nothing happens if the proxy has died."""
    assert proxy.stdin
    with suppress(OSError):
        proxy.stdin.write(b"\n")
        proxy.stdin.flush()


def _listening(port: int, heir: Path) -> tuple[socket.socket, socket.socket | None]:
    """Return a listening socket, and None. If there is an orphaned proxy, return its socket and the
    connection to it instead.

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
    """Return the socket that an orphaned proxy hands over, and the connection to that proxy. Raises
    OSError if there is none.
    """
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
