"""What a project may listen to, as it does to Django's own signals."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal


@dataclass(frozen=True)
class Recorded:
    """What one change did: its steps with their kinds, how many messages were said and left the
    window (by reason), and how full the window is then (1.0 at its limit; None without one).
    """

    memory_id: str
    actor: str
    steps: tuple[tuple[int, str], ...]
    said: int
    left: dict[str, int]
    fill: float | None


# Sent with `recorded` after the commit of each change, which it cannot undo: an error of a receiver
# is logged, and that is all.
memory_changed = Signal()
