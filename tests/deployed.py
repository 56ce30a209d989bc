"""The server as deploy/ configures it: gunicorn with two processes, in production settings."""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

from . import processes
from .serving import Served, Template, unstarted
from .waiting import until

SECONDS = 30
WORKERS = 2  # the default of deploy/gunicorn.conf.py


class Deployed:
    """Two workers with production settings; requests have the X-Forwarded-Proto of a TLS proxy."""

    def __init__(self, served: Served) -> None:
        self.served = served
        folder = Path(served.environment["CHATMEMORY_VAR"])
        notify = f"chatmemory-{uuid4().hex}"
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.settimeout(SECONDS)
        self.notices.bind(f"\0{notify}")
        served.environment |= {
            "CHATMEMORY_PRODUCTION": "1",
            "CHATMEMORY_PROXY": "1",
            "CHATMEMORY_SECRET_KEY": secrets.token_urlsafe(48),
            "CHATMEMORY_HOSTS": "127.0.0.1",
            "CHATMEMORY_BIND": f"127.0.0.1:{served.port}",
            "CHATMEMORY_METRICS_DIR": str(folder / "metrics"),
            "NOTIFY_SOCKET": f"@{notify}",
        }
        served.api.headers["X-Forwarded-Proto"] = "https"
        # A request on a connection that is just being closed is always refused: see the docs.
        served.api.headers["Connection"] = "close"

    def start(self) -> None:
        command = [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
        self.process = processes.start(command, self.served.environment, stderr=self.served.log)
        self.wait_for(b"READY=1")
        # gunicorn has forked them, and a reload would kill one that imports
        until(lambda: sum(map(ends_in_order, self.workers())) >= WORKERS)

    def wait_for(self, notice: bytes) -> None:
        """The exit code that systemd would get."""
        while notice not in self.notices.recv(1024):
            pass

    def reload(self) -> None:
        """Wait until the last worker of the old version has ended."""
        old = [os.pidfd_open(worker) for worker in self.workers()]
        assert old
        self.process.send_signal(signal.SIGHUP)
        for worker in old:
            assert select.select([worker], [], [], SECONDS)[0], "a worker does not end"
            os.close(worker)

    def workers(self) -> list[int]:
        main = self.process.pid
        return list(map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split()))

    def stop(self) -> int:
        """Stop, and check that it takes less than the 25 seconds for requests in progress."""
        self.process.terminate()
        return self.process.wait(15)

    def stream(self, memory_id: str, after: int = 0) -> Iterator[str]:
        url = f"{self.served.url}/c/{memory_id}/live/?after={after}"
        with self.served.api.get(url, stream=True, timeout=SECONDS) as answer:
            answer.raise_for_status()
            yield from answer.iter_lines(chunk_size=1, decode_unicode=True)


def ends_in_order(worker: int) -> bool:
    """Whether a process catches SIGTERM, which otherwise kills it at once."""
    status = Path(f"/proc/{worker}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@contextmanager
def deploying(
    folder: Path, template: Template, log: IO[str] | None = None, **environment: str
) -> Iterator[Deployed]:
    """A deployed server on a copy of the template."""
    with unstarted(folder, template) as served:
        served.environment |= environment
        served.log = log
        deployed = Deployed(served)
        deployed.start()
        yield deployed
        if deployed.process.poll() is None:
            deployed.stop()
        deployed.notices.close()
