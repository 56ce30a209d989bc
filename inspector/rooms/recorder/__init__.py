"""The recorder stores model calls while they happen. It records calls that go through its proxy,
and calls of clients in this process: `record(client)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

Client = TypeVar("Client")


def record(client: Client, spool: Path | None = None, is_storing: bool = True) -> Client:
    """Record all later calls of a client. Return the same client; see `in_process.record`."""
    from inspector.rooms.recorder import in_process  # Django imports this package without need

    return in_process.record(client, spool, is_storing)
