"""The recorder. `record(client)` records the calls of a client of this process."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

Client = TypeVar("Client")


def record(client: Client, spool: Path | None = None, is_storing: bool = True) -> Client:
    """Record the calls of a client from now on, and return it: see `in_process.record`."""
    from inspector.rooms.recorder import in_process  # Django imports this package without need

    return in_process.record(client, spool, is_storing)
