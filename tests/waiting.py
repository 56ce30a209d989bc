"""Waits for what announces itself to nobody, and leaves the processor to it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

PAUSE = 0.02  # seconds between two looks
SECONDS = 60


def until(holds: Callable[[], object]) -> None:
    """Look again and again, until something holds. Fails after a minute."""
    end = monotonic() + SECONDS
    while not holds():
        assert monotonic() < end, "it does not come about"
        sleep(PAUSE)
