"""Services that take time in line with the size of a window."""

from __future__ import annotations

from chatmemory import services

ROWS = {"current_incidents": lambda it: services.current_incidents(it.id)}
