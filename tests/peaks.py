"""The memory of a server process, and its allowed growth during a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MEGABYTE = 2**20
GROWTH_MAX = 100 * MEGABYTE


@contextmanager
def bounded_growth(process: int, most: int = GROWTH_MAX) -> Iterator[None]:
    """Assert that the memory of a process never grows by more than `most` bytes during the
    block.
    """
    peak = Path(f"/proc/{process}/clear_refs")
    if not peak.exists():
        pytest.skip("the peak memory of a process is read from /proc")
    peak.write_text("5")  # reset the peak to the current use
    before = _bytes(process, "VmRSS")
    yield
    grown = _bytes(process, "VmHWM") - before
    assert grown <= most, f"{grown / MEGABYTE:.0f} MB more"


def _bytes(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024
