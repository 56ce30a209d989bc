"""The memory of a server process, and what a body may take of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .serving import Served

MEGABYTE = 2**20


def peak(served: Served) -> int:
    """The peak memory of the server in bytes."""
    status = Path(f"/proc/{served.process.pid}/status")
    if not status.exists():
        pytest.skip("the peak memory of a process is read from /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def most(body: bytes) -> int:
    """How much memory a server may take for a body."""
    return 12 * len(body) + 20 * MEGABYTE
