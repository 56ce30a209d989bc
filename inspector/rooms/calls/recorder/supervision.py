"""The proxy is started, and started again when it ends. The socket is kept open meanwhile, so that
clients wait and are not refused.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread
from typing import IO

PROXY = Path(__file__).with_name("proxy.py")
HOST = "127.0.0.1"
TAKEN_SECONDS = 1.0
AGAIN_SECONDS = 0.05


class PortTaken(Exception):
    """Another recorder, or another program, has the port."""


class Supervisor:
    """The socket of the recorder, and its proxy."""

    def __init__(self, port: int, folder: Path, upstream: str | None) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._upstream = folder, upstream
        self._lock_path = folder / f"port-{port}.lock"
        self._lock = _locked(self._lock_path)
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        self._stopping = Event()
        self._proxy = self._started()
        self._thread = Thread(target=self._keep_running, daemon=True)
        self._thread.start()

    def _started(self) -> subprocess.Popen[bytes]:
        """Start the proxy. It learns of the death of this process by its standard input."""
        command = [sys.executable, str(PROXY), "--fd", str(self._socket.fileno())]
        command += ["--spool", str(self._folder), "--lock", str(self._lock_path)]
        command += ["--upstream", self._upstream] if self._upstream else []
        return subprocess.Popen(  # noqa: S603  (its own file)
            command, pass_fds=[self._socket.fileno()], stdin=subprocess.PIPE, start_new_session=True
        )

    def _keep_running(self) -> None:
        while True:
            self._proxy.wait()
            if self._stopping.wait(AGAIN_SECONDS):
                return
            self._proxy = self._started()

    def stop(self) -> None:
        """Let calls in flight end, and stop."""
        self._stopping.set()
        self._socket.close()
        self._proxy.terminate()
        self._proxy.wait()
        self._thread.join()
        self._lock.close()


def _locked(path: Path) -> IO[str]:
    """Return a locked file: a proxy that was left behind knows by it that there is a new recorder.

    Raises PortTaken.
    """
    file = path.open("a")
    end = time.monotonic() + TAKEN_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                file.close()
                raise PortTaken("another recorder runs on this port") from None
            time.sleep(0.02)
    os.set_inheritable(file.fileno(), False)
    return file


def _listening(port: int) -> socket.socket:
    """Return the socket. The port may still be that of a proxy that was left behind."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise PortTaken(f"port {port} is taken: {error.strerror}") from error
    found.listen(1024)
    return found
